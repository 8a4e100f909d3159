package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"repute"
	"repute/agent/signed"
	"repute/store"
	"repute/store/agentdb"
	"repute/x402"
)

// Options configure a router.
type Options struct {
	ID       repute.AgentID
	Version  string         // of the agent
	Signer   signed.Signer  // of answers; its account MUST be the agent's owner or wallet
	Wallets  signed.Wallets // nil: contract wallets cannot sign requests and promises
	Services []*Service
	Governor Governor // nil: Open
	Payments Payments
	// Concurrency is how many requests are answered at once, 10 when 0; Degraded is how many in mode
	// degraded, half of it when 0.
	Concurrency, Degraded int
	// Patience is how long a request waits for its turn where too many are answered, 2 s when 0; ten times as many
	// wait at most. Below 0: none waits.
	Patience time.Duration
	// Lease is how long a killed process keeps a payment, 15 s when 0.
	Lease time.Duration
	// Validator confirms paid results where the policy asks for it; zero: nobody is asked.
	Validator common.Address
	Registry  *prometheus.Registry // nil: one of its own
	Tracer    trace.Tracer         // nil: requests are not traced
	Log       *slog.Logger         // nil: slog's default
}

// Payments say how a router is paid.
type Payments struct {
	// Facilitator verifies and settles payments of x402; nil: there are none.
	Facilitator x402.Facilitator
	Address     common.Address // is paid
	// Promises accepts signed receipts of the specification, by which no money moves.
	Promises bool
	// RequireID demands an id of every payment (extension payment-identifier).
	RequireID bool
	// Signer signs offers and receipts (extension offer-receipt); nil: there are none.
	Signer x402.Signer
}

// Request asks for one execution of a capability.
type Request struct {
	ID string // of the request; made where it is empty
	// Correlation is the id that the client or a proxy gave the request. It goes to logs, traces and
	// handlers, and names nothing: two clients may use the same one. Empty for none.
	Correlation string
	Task        Task // of the protocol that carried the request; zero for none
	Capability  string
	Input       json.RawMessage
	// Resource is the URL that is paid for, such as https://agent.example/capability/echo or
	// mcp://tool/echo.
	Resource string
	Tool     bool   // the resource is an MCP tool
	Caller   string // key of the caller's network address
	Payment  *x402.Payment
	Promise  *signed.Promise
	Client   *signed.SignedRequest // who asks, where it was proved
}

// Identify reads who asks, and a payment by promise, from the headers X-Client-* and X-Payment-Receipt. Set q.Payment
// first: if it is set, a promise is ignored.
func (q *Request) Identify(h http.Header) (err error) {
	if text := h.Get(signed.HeaderReceipt); text != "" && q.Payment == nil {
		promise, err := signed.DecodePromise(text)
		if err != nil {
			return err
		}
		q.Promise = &promise
	}
	q.Client, err = signed.ReadRequest(h)
	return err
}

// Response answers a Request: with an output, or with a Problem.
type Response struct {
	Status    int // of HTTP
	RequestID string
	TaskHash  common.Hash // zero where the input could not be read
	Output    json.RawMessage
	Problem   *Problem
	// Signed is the signature of Output; nil for problems, whose bytes adapters sign by Sign.
	Signed *signed.Response
	// Settlement is nil where nothing was settled. Its form is that of PaymentVersion.
	Settlement     *x402.Settlement
	PaymentVersion int
	Mode           Mode
	Replayed       bool // the answer was stored, nothing was run
	Validation     bool // the policy asks for a validator's confirmation of the result
	// ValidationRequest names the request to the validator on the chain, zero for none.
	ValidationRequest common.Hash
}

// Router runs capabilities for clients. It is safe for concurrent use.
type Router struct {
	db       *store.DB
	log      *agentdb.Log
	o        Options
	services map[string]*Service
	gate     *gate
	metrics  *metrics
	started  time.Time
	score    atomic.Pointer[Score]
	choosing sync.Mutex // held while the policy's mode is set
	beat     atomic.Pointer[Beat]
	// registered is what the chain said last; nil before Upkeep.Start.
	registered atomic.Pointer[Registered]
	hard       context.Context // ends when running requests must end
	cancel     context.CancelFunc
}

// NewRouter returns a router. repute.ErrInvalid names the field of a service that cannot be served.
func NewRouter(db *store.DB, o Options) (*Router, error) {
	o.Concurrency = cmp.Or(o.Concurrency, 10)
	o.Degraded = cmp.Or(o.Degraded, max(1, o.Concurrency/2))
	o.Patience = cmp.Or(o.Patience, 2*time.Second)
	o.Lease = cmp.Or(o.Lease, 15*time.Second)
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Governor == nil {
		o.Governor = Open{}
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	r := &Router{db: db, log: agentdb.NewLog(db), o: o, services: map[string]*Service{},
		gate: newGate(o.Concurrency, o.Degraded, o.Patience), started: time.Now()}
	r.hard, r.cancel = context.WithCancel(context.Background())
	for _, s := range o.Services {
		if err := s.check(o.Payments.Promises); err != nil {
			return nil, err
		}
		name := s.Definition().Name
		if r.services[name] != nil {
			return nil, repute.Invalid("capabilities", name+" is there twice", "each name once")
		}
		r.services[name] = s
	}
	var err error
	r.metrics, err = newMetrics(r, o.Registry)
	return r, err
}

// Do takes a request through the eight steps of section 7.3. Work that is paid for goes on to its
// end where ctx ends, so that its answer is there when the client asks again.
func (r *Router) Do(ctx context.Context, q Request) *Response {
	q.ID = cmp.Or(q.ID, rand.Text())
	w := &work{router: r, request: q, asked: time.Now(), owner: rand.Text()}
	ctx, span := w.begin(ctx)
	defer span.End()
	busy := r.gate.enter(ctx)
	mode, _ := r.gate.state() // after the wait: it can have changed meanwhile
	w.began = time.Now()
	w.response = &Response{Status: http.StatusOK, RequestID: q.ID, Mode: mode}
	switch {
	case busy == nil:
		defer r.gate.leave()
	case q.Payment != nil && r.gate.enterOwed(): // it may have been charged before
		defer r.gate.leaveOwed()
		w.busy = busy
	default:
		return w.finish(ctx, span, busy)
	}
	return w.finish(ctx, span, w.run(ctx))
}

// Service returns the service of a capability, and nil if no capability has the name. In names, _ can replace -.
func (r *Router) Service(name string) *Service {
	if s := r.services[name]; s != nil {
		return s
	}
	return r.services[strings.ReplaceAll(name, "_", "-")]
}

// Services returns all services, ordered by name.
func (r *Router) Services() []*Service {
	out := []*Service{}
	for _, name := range r.Names() {
		out = append(out, r.services[name])
	}
	return out
}

// Names returns the names of the capabilities, in order.
func (r *Router) Names() []string {
	out := slices.AppendSeq([]string{}, maps.Keys(r.services))
	slices.Sort(out)
	return out
}

// ID returns the agent's id.
func (r *Router) ID() repute.AgentID { return r.o.ID }

// Signer returns the address of the account that signs answers.
func (r *Router) Signer() common.Address { return r.o.Signer.Address() }

// Version returns the agent's version.
func (r *Router) Version() string { return r.o.Version }

// Mode returns how the agent works, and whether it accepts requests.
func (r *Router) Mode() (Mode, bool) { return r.gate.state() }

// Uptime returns the time since the router was made.
func (r *Router) Uptime() time.Duration { return time.Since(r.started) }

// SetMode changes how the agent works. A change is logged and stored.
func (r *Router) SetMode(ctx context.Context, m Mode, reason string) {
	before := r.gate.set(m)
	if before == m {
		return
	}
	r.o.Log.WarnContext(ctx, "mode changed", "from", before, "to", m, "reason", reason)
	r.Event(ctx, "mode "+string(m), map[string]string{"from": string(before), "reason": reason})
}

// Event stores something that happened to the agent. A failure is logged.
func (r *Router) Event(ctx context.Context, name string, detail any) {
	raw, err := json.Marshal(detail)
	if err == nil {
		err = agentdb.Add(ctx, r.db, agentdb.Entry{Kind: agentdb.Event, Agent: r.o.ID.String(), Outcome: name,
			Detail: raw})
	}
	if err != nil {
		r.o.Log.ErrorContext(ctx, "event not stored", "event", name, "error", err)
	}
}

// Drain stops accepting requests, and waits until those in flight have ended, or cancels them when
// ctx ends. Payments of canceled ones can be sent again to the next process.
func (r *Router) Drain(ctx context.Context) {
	idle := r.gate.close()
	select {
	case <-idle:
	case <-ctx.Done():
		r.cancel()
		select {
		case <-idle:
		case <-time.After(storeTime): // a handler does not end
			r.o.Log.Error("requests did not end")
		}
	}
	r.cancel()
}

// Sign signs the bytes of an answer about a task, zero for none.
func (r *Router) Sign(ctx context.Context, task common.Hash, body []byte, metadata string) (*signed.Response, error) {
	out := &signed.Response{TaskResponse: signed.TaskResponse{AgentID: r.o.ID.TokenID, TaskHash: task,
		ResultHash: signed.HashBody(body), Timestamp: uint64(time.Now().Unix()), Metadata: metadata},
		Domain: signed.DomainOf(r.o.ID)}
	var err error
	if out.Signature, err = r.o.Signer.SignTyped(ctx, out.Data(out.Domain)); err != nil {
		return nil, fmt.Errorf("sign answer: %w", err)
	}
	return out, nil
}

// Receipts returns paid executions, the newest first.
func (r *Router) Receipts(ctx context.Context, before *agentdb.Entry, limit int) ([]agentdb.Entry, error) {
	return agentdb.Entries(ctx, r.db, agentdb.Query{Agent: r.o.ID.String(), Paid: true, Before: before, Limit: limit})
}

// Ready returns repute.ErrUnavailable where the database does not answer.
func (r *Router) Ready(ctx context.Context) error { return r.db.Ping(ctx) }
