package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"go.opentelemetry.io/otel/attribute"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/outbound"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// Context is an agent's only access to the outside (OpenFi agent standard, context and budget). A
// call that would exceed the budget is refused. Every call is journaled before it is made, and the
// runtime writes its receipt. A call that was made before a crash is not repeated: its answer comes
// from the journal. A Context is safe for concurrent use.
type Context struct {
	RunID, TaskID, ParentRunID string
	// Requester is the name of the caller who gave the task; empty where nobody is named.
	Requester      string
	OperatorWallet string
	// Services are the capabilities of the runtime: tools, the names that Tool accepts, chains, the ids
	// of the trust and the execution chain, payments, the bounds of Pay where it is allowed, and intents where Intent
	// is.
	Services  map[string]any
	Budget    policy.Budget
	Threshold policy.Threshold
	Log       *slog.Logger

	w     *work
	phase repute.Phase
	step  string

	mu     sync.Mutex
	closed error          // why nothing more is allowed
	calls  map[string]int // by kind
	last   int64          // receipt of the last call; 0 after TakeReceipt
}

// TakeReceipt returns the id of the receipt of the last call that was made or refused since the
// previous TakeReceipt, 0 if there is none. Of concurrent calls it returns one.
func (c *Context) TakeReceipt() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.last
	c.last = 0
	return id
}

// leaves notes the receipt of a call.
func (c *Context) leaves(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = id
}

// context returns the Context in which the agent works during one phase and, in Execute, one step.
// Calls are numbered per step.
func (w *work) context(phase repute.Phase, step string) *Context {
	return &Context{RunID: w.Run.ID, TaskID: w.Run.Task, ParentRunID: w.Run.Parent, Requester: w.Task.By,
		OperatorWallet: w.info.Manifest.OperatorWallet, Services: w.e.services(),
		Budget: w.terms.Budget.Payment(standard.BudgetOf(w.root().Run.Limits)), Threshold: w.terms.Threshold,
		Log: w.log.With("phase", phase.String(), "step", step),
		w:   w, phase: phase, step: step, calls: map[string]int{}}
}

// services returns the capabilities that agents may use.
func (e *Engine) services() map[string]any {
	out := map[string]any{"tools": slices.Sorted(maps.Keys(e.o.Tools)),
		"chains": map[string]uint64{"trust": e.o.TrustChain, "execution": e.o.ExecutionChain}}
	if e.o.Intents != nil {
		out["intents"] = true
	}
	if s := e.o.Policy().Spending(); e.o.Payer != nil && s.Allowed() {
		out["payments"] = map[string]any{"maxCall": s.MaxCall.String(), "maxTask": s.MaxTask.String(),
			"minScore": s.MinScore}
	}
	return out
}

// close ends the use of a Context.
func (c *Context) close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed == nil {
		c.closed = why
	}
}

// errOver is returned by the Context of an ended phase.
var errOver = errors.New("the phase is over")

// next returns the key of the next call of a kind in this phase and step. Without a key of the agent's own the
// calls of a kind are numbered. Those that an agent makes at the same time may be numbered otherwise after a crash:
// the digest of the request that is added to the number makes them other calls then, which are made anew.
func (c *Context) next(kind repute.CallKind, key string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return "", fmt.Errorf("call refused: %w", c.closed)
	}
	if key == "" {
		c.calls[string(kind)]++
		key = fmt.Sprint(c.calls[string(kind)])
	}
	return fmt.Sprintf("%s/%s/%s", c.phase, kind, key), nil
}

// Tool calls a tool by name. It returns repute.ErrNotFound if there is none, repute.ErrLimited if
// the budget is exhausted, and repute.ErrInvalid if repute.CheckJSON refuses input or answer.
func (c *Context) Tool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	tool := c.w.e.o.Tools[name]
	if tool == nil {
		return nil, repute.Unknown("tool %q", name)
	}
	if err := readable("input", input); err != nil {
		return nil, err
	}
	r := repute.Receipt{Kind: repute.CallTool, Ref: name, Summary: "tool " + name, Request: input}
	return c.call(ctx, r, func(ctx context.Context, key string) (json.RawMessage, error) {
		answer, err := tool.Call(ctx, c.w.origin(), key, input)
		if err == nil {
			err = readable("answer", answer)
		}
		if err != nil {
			return nil, err
		}
		return answer, nil
	})
}

// readable refuses JSON that cannot be stored and shown; missing JSON is accepted.
func readable(field string, v json.RawMessage) error {
	if len(v) == 0 {
		return nil
	}
	return repute.CheckJSON(field, v)
}

// HTTP sends a request to a public address; the resolved addresses are checked. An answer with any
// status is no error.
func (c *Context) HTTP(ctx context.Context, q outbound.HTTPRequest) (out outbound.HTTPResponse, err error) {
	shown, err := shownURL(q.URL)
	if err != nil {
		return out, err
	}
	r := requested(repute.CallHTTP, &q, shown)
	body, err := c.call(ctx, r, func(ctx context.Context, key string) (json.RawMessage, error) {
		answer, err := q.Send(ctx, c.w.e.o.HTTP, key)
		return journal.JSON(answer), err
	})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(body, &out)
}

// shownURL returns a URL without what may be secret in it: receipts are public unless reads are private.
func shownURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, repute.Invalid("url", "is no address", "an http or https URL") // not quoted: it may have a password
	}
	u.User, u.RawQuery = nil, ""
	return u, nil
}

// requested returns the receipt of a request before it is journaled.
func requested(kind repute.CallKind, q *outbound.HTTPRequest, shown *url.URL) repute.Receipt {
	return repute.Receipt{Kind: kind, Ref: shown.String(), Summary: q.Verb() + " " + shown.Redacted(),
		Domain:  shown.Hostname(),
		Request: journal.JSON(map[string]any{"method": q.Verb(), "sha256": journal.Digest([]byte(q.URL), q.Body)})}
}

// Read calls a view function of a contract. It counts as a tool call.
func (c *Context) Read(ctx context.Context, chainID uint64, to common.Address, data []byte) (out []byte, err error) {
	if c.w.e.o.Chain == nil {
		return nil, fmt.Errorf("no chain is configured: %w", repute.ErrUnavailable)
	}
	r := repute.Receipt{Kind: repute.CallChain, Ref: to.Hex(), Summary: "read of " + to.Hex(), Chain: chainID,
		Domain:  c.w.e.domain(chainID),
		Request: journal.JSON(map[string]any{"to": to, "data": data})}
	body, err := c.call(ctx, r, func(ctx context.Context, _ string) (json.RawMessage, error) {
		b, err := c.w.e.o.Chain.Read(ctx, chainID, to, data)
		return journal.JSON(b), err
	})
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(body, &out)
}

// call journals a call that costs nothing but its number, makes it, and journals its result.
func (c *Context) call(ctx context.Context, r repute.Receipt,
	do func(context.Context, string) (json.RawMessage, error)) (json.RawMessage, error) {
	made := charged{Receipt: r, identity: r.Request}
	return c.charged(ctx, made, func(ctx context.Context, key string) (json.RawMessage, Amount, error) {
		answer, err := do(ctx, key)
		return answer, Amount{}, err
	})
}

// charged is a call before it is journaled. The members are those of LocalCall.
type charged struct {
	repute.Receipt
	identity []byte
	most     Amount
	once     bool
}

// charged journals a call with what it can use, makes it, and journals its result with what it used. Before the dry
// run only chains are read: neither trust nor policy has allowed the agent anything else. A call that was cut off
// stays open in the journal and is made again; one that is a result of the run, also an error, is never made again.
func (c *Context) charged(ctx context.Context, r charged,
	do func(context.Context, string) (json.RawMessage, Amount, error)) (json.RawMessage, error) {
	if c.phase < repute.PhaseDryRun && r.Kind != repute.CallChain {
		return nil, transaction.Refuse("phase",
			"what may have an effect (%s) is called from the dry run on, once trust and policy allow the agent: not in %s",
			r.Kind, c.phase)
	}
	key, err := c.next(r.Kind, "")
	if err != nil {
		return nil, err
	}
	// Another request is another call: an agent need not do the same things again.
	r.Key = key + "/" + journal.Digest([]byte(r.Ref), r.identity)[:16]
	r.Run, r.Step, r.Request = c.RunID, c.step, journal.Bounded(r.Request)
	if c.w.databaseFailed() != nil { // nothing that happens after is stored
		return nil, ErrAway
	}
	journaled, err := c.begin(ctx, &r)
	if err != nil {
		return nil, err
	}
	if journaled.Done {
		return journaled.Result, journal.Replayed(journaled.Error)
	}
	ctx, end := c.w.e.trace.Start(ctx, string(r.Kind), attribute.String("ref", r.Ref), attribute.String("step", c.step),
		attribute.String("key", r.Key))
	answer, used, callErr := do(ctx, c.RunID+"/"+c.step+"/"+r.Key)
	if errors.Is(callErr, store.ErrDatabase) || errors.Is(callErr, ErrAway) { // it may be made again
		end(callErr)
		return nil, c.w.lost(callErr)
	}
	if callErr == nil && len(answer) > outbound.MaxAnswer*2 {
		callErr = fmt.Errorf("the answer is too large: %w", repute.ErrLimited)
	}
	end(callErr)
	if ctx.Err() != nil && callErr != nil {
		return nil, callErr // cut off: it may be made again
	}
	o := rundb.CallOutcome{Result: answer, Tokens: used.Tokens - r.most.Tokens, Cost: used.Cost - r.most.Cost}
	if callErr != nil {
		o.Result, o.Error, o.Uncertain = nil, callErr.Error(), r.once && errors.Is(callErr, ErrUncertain)
	}
	if err := rundb.EndCall(ctx, c.w.e.db, c.w.lease, journaled.ID, o); err != nil {
		return nil, c.w.lost(err)
	}
	return answer, callErr
}
