package agentbench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute/internal/bench/harness"
	"repute/internal/freeport"
	"repute/x402/facilitator"
)

// Options say what Agent measures.
type Options struct {
	Program  harness.Program // this program, which is the agent when started as agent-worker
	Requests int             // of each measurement of times
	AtOnce   int             // clients
	Paid     int             // calls while processes are killed
	Kills    int             // kill -9, at random moments; not more than Paid
	Progress io.Writer       // lines for a person; nil: none
}

// Times are of requests, in milliseconds. All are 0 where no request was answered.
type Times struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
}

// Measurements is what Agent found. Times are in milliseconds. Bare is of a handler in the same process that reads and
// writes JSON and does nothing else: what the runtime adds is the difference to it.
type Measurements struct {
	Serial struct { // one request after the other
		Bare  Times   `json:"bare"`
		Free  Times   `json:"free"`
		Ratio float64 `json:"ratio"` // of the medians
	} `json:"serial"`
	AtOnce struct {
		Bare   Times   `json:"bare"`
		Free   Times   `json:"free"`
		Paid   Times   `json:"paid"`
		Before Times   `json:"before_handler"` // of paid requests: input, policy and payment, in the process
		Schema Times   `json:"schema"`         // of free requests before the handler: input and policy
		Health Times   `json:"health"`         // while free requests are answered
		Ratio  float64 `json:"ratio"`          // of the medians of free and bare
	} `json:"at_once"`
	Kills struct {
		Calls       int     `json:"calls"`
		Kills       int     `json:"kills"`
		Seconds     float64 `json:"seconds"`
		Interrupted int     `json:"interrupted"` // answered so, not charged, and paid for anew
		Settled     int     `json:"settled"`     // authorizations of the ledger
		Lost        int     `json:"lost"`        // settled without an answer
		Doubled     int     `json:"doubled"`     // settled twice for one call, or answered in two ways
	} `json:"kills"`
}

// Targets of Agent, in milliseconds.
const (
	maxSchema   = 10  // of 99 in 100, from the begin of a request to its handler, where nothing is paid
	maxPayment  = 50  // the same with a payment that is verified and settled; the ledger takes next to nothing
	maxOverhead = 100 // difference of the p99 of a free request and of the bare handler
	maxMedian   = 5   // of a free request that is alone
	maxHealth   = 100 // of 99 in 100 questions for health, while all clients are answered
)

// Agent measures the runtime. A report is returned with the targets that were judged; a payment that is lost or doubled
// is a missed target and no error.
func Agent(ctx context.Context, o Options) (harness.Report, error) {
	r := harness.Report{Name: "agent",
		Config: map[string]any{"requests": o.Requests, "at_once": o.AtOnce, "paid": o.Paid, "kills": o.Kills}}
	x := &run{Options: o, Progress: harness.Progress{To: o.Progress},
		ledger: &ledger{settled: map[common.Hash]common.Hash{}},
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * o.AtOnce}}}
	return harness.OnServer(ctx, x.Progress, r, false, func(server *harness.Server) (any, []harness.Target, error) {
		err := x.measure(ctx, server)
		return x.m, x.targets(), err
	})
}

// measure makes all measurements with a database on a server.
func (x *run) measure(ctx context.Context, server *harness.Server) (err error) {
	d, err := server.Fresh(ctx)
	if err != nil {
		return err
	}
	facilitator := httptest.NewServer(facilitator.NewHandler(x.ledger))
	defer facilitator.Close()
	if err := x.begin(ctx, d.URL, facilitator.URL); err != nil {
		return err
	}
	defer func() { x.agent.Kill() }()
	for _, step := range []func(context.Context) error{x.serial, x.atOnce, x.killed} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run is one call of Agent. killed replaces agent while calls are made: they use base, which stays.
type run struct {
	Options
	harness.Progress
	ledger *ledger          // of all measurements: killed counts from its beginning on
	client *http.Client     // its timeout is a minute, which bounds every request
	args   []string         // of the agent's process, the same after each kill
	base   string           // URL of the agent, without a slash at its end
	agent  *harness.Process // the newest one

	mu sync.Mutex // of what calls count in m.Kills
	m  Measurements
}

// targets judges what was measured.
func (x *run) targets() []harness.Target {
	a, k := &x.m.AtOnce, &x.m.Kills
	at := fmt.Sprintf("%d at once, p99", x.AtOnce)
	return []harness.Target{
		harness.AtMost("input by its schema and policy before the handler, "+at, a.Schema.P99, maxSchema, "ms"),
		harness.AtMost("input, policy and payment before the handler, "+at, a.Before.P99, maxPayment, "ms"),
		harness.AtMost("free request less the bare handler, "+at, a.Free.P99-a.Bare.P99, maxOverhead, "ms"),
		harness.AtMost("free request by itself, median", x.m.Serial.Free.P50, maxMedian, "ms"),
		harness.AtMost("health under this load, p99", a.Health.P99, maxHealth, "ms"),
		harness.AtMost("payments lost by kills", float64(k.Lost), 0, ""),
		harness.AtMost("payments doubled by kills", float64(k.Doubled), 0, ""),
	}
}

// begin starts the agent at a free address. The address is free when it is chosen, and is taken again by every process
// that replaces a killed one.
func (x *run) begin(ctx context.Context, database, facilitator string) error {
	listen, err := freeport.Of("127.0.0.1:0")
	if err != nil {
		return err
	}
	x.base = "http://" + listen
	x.args = []string{"agent-worker", "--database-url", database, "--facilitator", facilitator, "--listen", listen}
	return x.start(ctx)
}

// start runs the agent and waits until it answers.
func (x *run) start(ctx context.Context) (err error) {
	agent, err := x.Program.Start(x.args...)
	if err != nil {
		return err
	}
	x.agent = agent
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = x.agent.Await(ctx, 20*time.Millisecond, func(context.Context) (bool, error) {
		res, err := x.client.Get(x.base + "/health")
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return true, res.Body.Close()
	})
	if err != nil {
		x.agent.Kill()
	}
	return err
}

// timesOf summarizes milliseconds.
func timesOf(took []float64) Times {
	return Times{len(took), harness.Quantile(took, 0.5), harness.Quantile(took, 0.99)}
}

// ratio compares medians. A median of 0, which a coarse clock gives, counts as a microsecond.
func ratio(a, b Times) float64 { return a.P50 / cmp.Or(b.P50, 0.001) }

// killed makes the paid calls, and kills the agent while a random one of them is made. How fast the machine is does
// not change the number of kills.
func (x *run) killed(ctx context.Context) error {
	k, began := &x.m.Kills, time.Now()
	before := x.ledger.moved()
	// begun has room for all calls: they MUST NOT wait for this loop, which waits for the agent's new process meanwhile.
	ended, begun := make(chan error, 1), make(chan struct{}, x.Paid)
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(begun)
		ended <- x.payCalls(calls, begun)
	}()
	// The numbers of the calls during which the agent is killed, each once.
	at := rand.Perm(x.Paid)[:min(x.Kills, x.Paid)]
	slices.Sort(at)
	for n := 0; k.Kills < len(at); n++ {
		if _, more := <-begun; !more {
			break // the calls ended with an error
		}
		if n != at[k.Kills] {
			continue
		}
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond) // a call takes some milliseconds
		x.agent.Kill()
		if err := x.start(ctx); err != nil {
			return err
		}
		k.Kills++
	}
	err := <-ended
	if err == nil {
		x.judge(before, began)
	}
	return err
}

// judge compares what the ledger moved with the calls, each of which MUST have moved the price once. An interrupted
// call that was not charged is paid for anew, and counts once.
func (x *run) judge(before int, began time.Time) {
	k := &x.m.Kills
	k.Calls, k.Seconds, k.Settled = x.Paid, time.Since(began).Seconds(), x.ledger.moved()-before
	k.Lost += max(0, k.Calls-k.Settled) // answered without a settlement
	k.Doubled += max(0, k.Settled-k.Calls)
	x.Say("%d paid calls with %d kills in %.0f s: %d settled, %d interrupted, %d lost, %d doubled", k.Calls, k.Kills,
		k.Seconds,
		k.Settled, k.Interrupted, k.Lost, k.Doubled)
}
