package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/internal/pgtest"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/store/agentdb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// outside is what an agent sees of chain and index.
type outside struct {
	mu     sync.Mutex
	agent  agent.Registered
	events []repute.Record
	score  agent.Score
	err    error // of the index
	chain  error
	reads  int                              // of the agent
	silent bool                             // the agent cannot be read, and its events can
	lie    func() (agent.Registered, error) // the answer to the next read of the agent, and to no other
}

// Agent implements agent.Registry.
func (o *outside) Agent(context.Context) (agent.Registered, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reads++
	if lie := o.lie; lie != nil {
		o.lie = nil
		return lie()
	}
	if o.silent {
		return agent.Registered{}, repute.ErrUnavailable
	}
	return o.agent, o.chain
}

// Events implements agent.Registry.
func (o *outside) Events(_ context.Context, from uint64) ([]repute.Record, uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if from == 0 { // the question for the newest block
		return nil, 1, o.chain
	}
	out := o.events
	o.events = nil
	return out, from + 1, o.chain
}

// Own implements agent.Reputation.
func (o *outside) Own(context.Context) (agent.Score, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.score
	s.At = time.Now()
	return s, o.err
}

func (o *outside) set(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
}

// byScore is a policy of the own score: below 50 degraded, old for more than a second maintenance.
type byScore struct{ agent.Open }

// Mode implements agent.Governor.
func (byScore) Mode(own *agent.Score, now time.Time) (agent.Mode, string) {
	switch {
	case own == nil || now.Sub(own.At) > time.Second:
		return agent.Maintenance, "the score is old"
	case own.Value < 50:
		return agent.Degraded, "the score is low"
	}
	return agent.Normal, ""
}

type nothing struct{}

// Run implements agent.Handler.
func (nothing) Run(context.Context, capability.Call) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

func upkeep(t *testing.T, o *outside) (*agent.Upkeep, *store.DB) {
	t.Helper()
	return upkeepLogging(t, o, nil)
}

// upkeepLogging is upkeep with a log of its own.
func upkeepLogging(t *testing.T, o *outside, log *slog.Logger) (*agent.Upkeep, *store.DB) {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	key, err := crypto.GenerateKey()
	ok(t, err)
	c, err := capability.New(capability.Definition{Name: "echo", Version: "1.0.0", InputSchema: json.RawMessage(`{}`),
		OutputSchema: json.RawMessage(`{}`)})
	ok(t, err)
	signer := keys.Local{Key: key}
	o.agent = agent.Registered{Owner: common.Address{1}, Wallet: signer.Address(), URI: "https://a.example/"}
	router, err := agent.NewRouter(db, agent.Options{Signer: signer, Governor: byScore{}, Version: "1.0.0", Log: log,
		Services: []*agent.Service{{Capability: c, Handler: nothing{}}}})
	ok(t, err)
	return &agent.Upkeep{Router: router, Registry: o, Reputation: o, Sync: 50 * time.Millisecond,
		Beat:  50 * time.Millisecond,
		Watch: 20 * time.Millisecond, Confirm: 20 * time.Millisecond}, db
}

// await waits until an agent is in a mode.
func await(t *testing.T, u *agent.Upkeep, want agent.Mode) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if mode, _ := u.Router.Mode(); mode == want {
			return
		}
		if time.Now().After(end) {
			mode, _ := u.Router.Mode()
			t.Fatalf("mode %s, want %s", mode, want)
		}
	}
}

// uris resolves the URIs of a test.
type uris struct{}

// Resolves implements agent.Resolver.
func (uris) Resolves(_ context.Context, uri string) error {
	if uri == "https://a.example/" {
		return nil
	}
	return errors.New("it cannot be read: " + uri)
}

// TestURIWarnings: what is wrong with the URI onchain is logged once, and again when it changes; an empty
// URI is never read.
func TestURIWarnings(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var out strings.Builder
	written := func() string {
		mu.Lock()
		defer mu.Unlock()
		return out.String()
	}
	o := &outside{score: agent.Score{Value: 80}}
	u, _ := upkeepLogging(t, o, slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return out.Write(b)
	}), nil)))
	u.Resolver = uris{}
	o.set(func() { o.agent.URI = "" })
	ok(t, u.Start(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	reads := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.reads
	}
	wait := func(done func() bool) {
		for end := time.Now().Add(time.Minute); !done() && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
	}
	wait(func() bool { return reads() >= 4 })
	o.set(func() { o.agent.URI = "https://b.example/" })
	wait(func() bool { return strings.Contains(written(), "does not resolve") })
	after := reads()
	wait(func() bool { return reads() >= after+3 })
	cancel()
	ok(t, <-ended)
	for text, want := range map[string]int{"the agent has no URI onchain: call setAgentURI": 1, "does not resolve": 1,
		"it cannot be read: https://b.example/": 1} {
		if got := strings.Count(written(), text); got != want {
			t.Errorf("%q is logged %d times, want %d:\n%s", text, got, want, written())
		}
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestUpkeep: the mode follows the own score; without index or chain the last score counts with its
// age; events are stored; a transferred agent is not served any more.
func TestUpkeep(t *testing.T) {
	t.Parallel()
	o := &outside{score: agent.Score{Value: 80}}
	u, db := upkeep(t, o)
	ok(t, u.Start(t.Context()))
	if b := u.Router.Heartbeat(); b == nil || len(b.Signature) != 65 {
		t.Errorf("%+v", b)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	go func() { ended <- u.Run(ctx) }()
	await(t, u, agent.Normal)
	o.set(func() { o.score.Value = 20 })
	await(t, u, agent.Degraded)
	o.set(func() { o.err = repute.ErrUnavailable })
	await(t, u, agent.Maintenance)
	if s := u.Router.Score(); s == nil || s.Value != 20 || time.Since(s.At) < time.Second {
		t.Errorf("the last score is %+v", s)
	}
	o.set(func() { o.err, o.chain, o.score.Value = nil, repute.ErrUnavailable, 90 })
	await(t, u, agent.Normal)
	o.set(func() {
		o.chain, o.events = nil, []repute.Record{{Event: repute.URIUpdated{}},
			{Event: repute.NewFeedback{}, Log: types.Log{Index: 1}}}
	})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if last, err := agentdb.LastEvent(t.Context(), db, u.Router.ID().String(), "NewFeedback"); err == nil &&
			last != "" {
			break
		}
	}
	entries, err := agentdb.Entries(t.Context(), db, agentdb.Query{Agent: u.Router.ID().String(), Kind: agentdb.Event})
	ok(t, err)
	seen := ""
	for _, e := range entries {
		seen += e.Outcome + " "
	}
	for _, want := range []string{"start", "heartbeat", "mode degraded", "mode maintenance", "URIUpdated",
		"NewFeedback"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%s is not stored", want)
		}
	}
	o.set(func() { o.agent.Wallet = common.Address{} })
	select {
	case err := <-ended:
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "agent.key") {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a transferred agent is still served")
	}
}

// TestWrongNode: what a node says of the agent for a moment does not end it; what the chain says again
// and again does.
func TestWrongNode(t *testing.T) {
	t.Parallel()
	o := &outside{score: agent.Score{Value: 80}}
	u, _ := upkeep(t, o)
	u.Confirm = 100 * time.Millisecond
	ok(t, u.Start(t.Context()))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	another := o.agent
	another.Wallet = common.Address{}
	for _, lie := range []func() (agent.Registered, error){
		func() (agent.Registered, error) { return agent.Registered{}, repute.Missing("agent 1:2") },
		func() (agent.Registered, error) { return another, nil },
	} {
		o.set(func() { o.lie = lie })
		for told := false; !told; time.Sleep(time.Millisecond) {
			o.set(func() { told = o.lie == nil })
		}
		select {
		case err := <-ended:
			t.Fatalf("one wrong answer ends the agent: %v", err)
		case <-time.After(500 * time.Millisecond):
		}
	}
	o.set(func() { o.chain = repute.Missing("agent 1:2") })
	select {
	case err := <-ended:
		if !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Error("an agent that is not registered is still served")
	}
}

// TestRefusedStart: without the agent, or with a key of somebody else, nothing is served.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	o := &outside{}
	u, _ := upkeep(t, o)
	o.agent.Wallet = common.Address{2}
	if err := u.Start(t.Context()); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("%v", err)
	}
	o.chain = repute.Missing("agent 1:2")
	if err := u.Start(t.Context()); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// slow is a policy whose first choice of a mode takes long.
type slow struct {
	agent.Open
	asked chan struct{}
	calls atomic.Int32
}

// Mode implements agent.Governor.
func (s *slow) Mode(*agent.Score, time.Time) (agent.Mode, string) {
	if s.calls.Add(1) > 1 {
		return agent.Shutdown, "the score is low"
	}
	close(s.asked)
	time.Sleep(200 * time.Millisecond)
	return agent.Normal, ""
}

// TestLastModeCounts: a choice that took long does not undo a shutdown that was chosen after it.
func TestLastModeCounts(t *testing.T) {
	t.Parallel()
	_, db := upkeep(t, &outside{})
	s := &slow{asked: make(chan struct{})}
	router, err := agent.NewRouter(db, agent.Options{Governor: s})
	ok(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		router.SetScore(t.Context(), nil)
	}()
	<-s.asked
	router.SetScore(t.Context(), nil)
	<-ended
	if mode, accepting := router.Mode(); mode != agent.Shutdown || accepting {
		t.Errorf("mode %s, accepting %t", mode, accepting)
	}
}

// unsure is a policy that cannot judge.
type unsure struct{ agent.Open }

// Decide implements agent.Governor.
func (unsure) Decide(context.Context, agent.Question) agent.Decision {
	return agent.Decision{Unavailable: true, Reasons: []string{"the client's score cannot be read now"},
		Retry: 5 * time.Second}
}

// TestUnsurePolicy: a request that cannot be judged is refused with 503, so that the client tries again.
func TestUnsurePolicy(t *testing.T) {
	t.Parallel()
	u, db := upkeep(t, &outside{})
	ok(t, u.Start(t.Context())) // makes the log
	router, err := agent.NewRouter(db, agent.Options{Governor: unsure{}, Services: u.Router.Services()})
	ok(t, err)
	r := router.Do(t.Context(), agent.Request{Capability: "echo", Input: json.RawMessage(`{}`)})
	if p := r.Problem; r.Status != 503 || p == nil || p.Retry != 5*time.Second ||
		!strings.Contains(p.Message, "score") {
		t.Errorf("%d %+v", r.Status, p)
	}
}

// TestWorkOfEventsIsRetried: the score after a rating and the registration after a change of the URI are read again
// where index or chain did not answer at first, without waiting for the next turn of either.
func TestWorkOfEventsIsRetried(t *testing.T) {
	t.Parallel()
	o := &outside{score: agent.Score{Value: 80}}
	u, _ := upkeep(t, o)
	u.Sync, u.Beat = time.Hour, time.Hour
	ok(t, u.Start(t.Context()))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	defer func() { stop(); ok(t, <-ended) }()
	await(t, u, agent.Normal)
	o.set(func() {
		o.err, o.score.Value = repute.ErrUnavailable, 20
		o.events = []repute.Record{{Event: repute.NewFeedback{}, Log: types.Log{Index: 1}}}
	})
	for taken := false; !taken; time.Sleep(time.Millisecond) {
		o.set(func() { taken = o.events == nil })
	}
	time.Sleep(50 * time.Millisecond) // the score could not be read
	o.set(func() { o.err = nil })
	await(t, u, agent.Degraded)

	var before int
	o.set(func() {
		before, o.silent = o.reads, true
		o.events = []repute.Record{{Event: repute.URIUpdated{}, Log: types.Log{Index: 2}}}
	})
	for asked := 0; asked <= before; time.Sleep(time.Millisecond) {
		o.set(func() { asked = o.reads })
	}
	o.set(func() { o.silent, o.agent.Owner = false, common.Address{2} })
	for end := time.Now().Add(time.Minute); u.Owners()[0] != (common.Address{2}); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the agent is never read again")
		}
	}
}
