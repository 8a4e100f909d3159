package payer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/serve"
	"repute/internal/paytest"
	"repute/orchestrator"
	"repute/orchestrator/control/agentlog"
	"repute/orchestrator/outbound"
	"repute/orchestrator/payer"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/agentdb"
	"repute/store/rundb"
	"repute/store/walletdb"
	"repute/x402"
)

// buyer is an agent of the orchestrator that pays for the requests that its task's input lists, in one
// step.
type buyer struct {
	early bool // it pays in Plan
}

func (buyer) Info() standard.Info {
	return standard.Info{Slug: "buyer", DisplayName: "buyer", Version: "1.0.0", IdentityMode: standard.IdentityMode,
		Manifest: standard.Manifest{Schema: standard.ManifestSchema, Name: "buyer", Slug: "buyer", Version: "1.0.0"}}
}

func (buyer) CanHandle(context.Context, standard.Task) (bool, error) { return true, nil }

func (b buyer) Plan(ctx context.Context, t standard.Task, c *orchestrator.Context) (standard.Plan, error) {
	if b.early {
		if _, err := buy(ctx, t, c); err != nil {
			return standard.Plan{}, err
		}
	}
	return standard.Plan{Steps: []standard.Step{{ID: "buy", Description: t.Goal, Agent: "buyer"}}}, nil
}

// buy pays for each request of a task.
func buy(ctx context.Context, t standard.Task, c *orchestrator.Context) (out []outbound.PaidResponse, err error) {
	var list []outbound.PaidRequest
	if err := json.Unmarshal(t.Input, &list); err != nil {
		return nil, err
	}
	for _, q := range list {
		a, err := c.Pay(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (buyer) Execute(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, p, func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		out, err := buy(ctx, t, c)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	})
}

func (buyer) Verify(context.Context, standard.Task, standard.Execution, *orchestrator.Context) (standard.Verification,
	error) {
	return standard.Verification{Checks: []standard.Check{{Name: "bought", Passed: true}}, Score: 1}, nil
}

func (buyer) Summarize(_ context.Context, _ standard.Task, done standard.Execution, _ standard.Verification,
	_ *orchestrator.Context) (standard.Summary, error) {
	var bought []outbound.PaidResponse
	s := standard.Summary{Text: "bought"}
	if len(done.Steps) == 1 && json.Unmarshal(done.Steps[0].Result, &bought) == nil {
		for _, b := range bought {
			if b.Payment != nil {
				s.Receipts = append(s.Receipts, b.Payment.Transaction)
			}
		}
	}
	return s, nil
}

// counted echoes its input and counts its runs.
type counted struct {
	mu   sync.Mutex
	runs int
}

// Run implements agent.Handler.
func (c *counted) Run(_ context.Context, call capability.Call) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs++
	return json.Marshal(map[string]any{"echo": call.Input, "run": c.runs})
}

func (c *counted) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

// runtime serves an agent of the payee's whose answers cost one cent, and returns the URL of its
// capability.
func (w *world) runtime(t *testing.T) (string, *counted) {
	t.Helper()
	d := capability.Definition{Name: "echo", Version: "1.0.0", Description: "echo",
		InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`)}
	c, err := capability.New(d)
	ok(t, err)
	ok(t, agentdb.Maintain(t.Context(), w.db, agentdb.MinRetention))
	h, key := &counted{}, w.Signer(paytest.PayeeAccount)
	router, err := agent.NewRouter(w.db, agent.Options{
		ID:      repute.AgentID{ChainID: w.Chain().ID, Registry: w.Chain().Identity, TokenID: *uint256.NewInt(1)},
		Version: "1.0.0", Signer: key, Lease: time.Second, Log: slog.New(slog.DiscardHandler),
		Payments: agent.Payments{Facilitator: w.shop.Facilitator, Address: w.Payee(), Signer: key},
		Services: []*agent.Service{{Capability: c, Handler: h, Price: &agent.Price{Amount: "0.01", Currency: "USDC",
			Decimals: 6, Ways: []agent.Way{{Requirements: w.Requirements(10_000), Symbol: "USDC", Decimals: 6}}}}}})
	ok(t, err)
	handler, err := serve.New(serve.Options{Router: router, Profile: serve.Profile{Name: "echo"}, Rate: 1000,
		Burst:   1000,
		MaxBody: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	ok(t, err)
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL + "/capability/echo", h
}

// office is an orchestrator on the database of a world.
type office struct {
	*world
	client *tasks.Client
}

// payments is the policy of tests: 5 cents a call and 25 a task.
const payments = "version: \"1\"\npayments: {index: %q, minScore: 20, maxHost: \"10\", maxDay: \"10\"}\n"

// open runs an engine with a policy until the test ends.
func (w *world) open(t *testing.T, rules string, b orchestrator.Module) *office {
	t.Helper()
	e, err := newEngine(w.db, rules, b, w.runs())
	ok(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	client, err := tasks.NewClient(w.db)
	ok(t, err)
	o := &office{w, client}
	o.until(t, "agent is installed", func() bool {
		_, err := rundb.Module(t.Context(), w.db, b.Info().Slug)
		return err == nil
	})
	return o
}

// newEngine returns an engine with one agent.
func newEngine(db *store.DB, rules string, b orchestrator.Module, p orchestrator.Payer) (*orchestrator.Engine, error) {
	parsed, err := policy.Parse([]byte(rules))
	if err != nil {
		return nil, err
	}
	return orchestrator.New(db, orchestrator.Options{Lenient: true, Hold: time.Second, Payer: p,
		Policy: func() *policy.Policy { return parsed }, Modules: []orchestrator.Module{b}})
}

// runs pays for the buyer with the payer's key.
func (w *world) runs() *payer.Runs {
	return payer.ForRuns(w.db, payer.RunOptions{HTTP: http.DefaultClient,
		Coins: []repute.Stablecoin{{ChainID: w.Chain().ID,
			Address: w.Token, Symbol: "USDC", Decimals: 6}},
		Keys: func(chainID uint64, slug string) (x402.Signer, error) {
			if chainID != w.Chain().ID || slug != "buyer" {
				return nil, repute.ErrNotFound
			}
			return w.Signer(paytest.PayerAccount), nil
		}})
}

func (o *office) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// input lists requests with the texts.
func input(url string, texts ...string) json.RawMessage {
	list := []outbound.PaidRequest{}
	for _, text := range texts {
		list = append(list, outbound.PaidRequest{HTTPRequest: outbound.HTTPRequest{Method: "POST", URL: url,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: fmt.Appendf(nil, `{"text":%q}`, text)}})
	}
	raw, _ := json.Marshal(list) // texts and bytes always are JSON
	return raw
}

// submit gives the buyer a task.
func (o *office) submit(t *testing.T, in json.RawMessage) repute.Task {
	t.Helper()
	task, _, err := o.client.Submit(t.Context(),
		standard.Request{Coordinator: "buyer", Goal: "buy", Input: in, By: "test"})
	ok(t, err)
	return task
}

// ended waits for a task.
func (o *office) ended(t *testing.T, task repute.Task) (repute.Task, repute.Run) {
	t.Helper()
	var run repute.Run
	o.until(t, "task ends", func() bool {
		var err error
		run, err = rundb.Run(t.Context(), o.db, task.Run)
		ok(t, err)
		return run.Status.Ended()
	})
	task, err := rundb.Task(t.Context(), o.db, task.ID)
	ok(t, err)
	return task, run
}

// bought are the answers of a run.
func (o *office) bought(t *testing.T, run repute.Run) (out []outbound.PaidResponse) {
	t.Helper()
	steps, err := rundb.Steps(t.Context(), o.db, run.ID)
	ok(t, err)
	if len(steps) != 1 || json.Unmarshal(steps[0].Result, &out) != nil {
		t.Fatalf("steps %+v of run %s: %s", steps, run.Status, run.Error)
	}
	return out
}

// payments are the receipts of paid requests.
func (o *office) payments(t *testing.T, run repute.Run) (out []repute.Receipt) {
	t.Helper()
	list, err := rundb.Receipts(t.Context(), o.db, run.ID)
	ok(t, err)
	for _, r := range list {
		if r.Kind == repute.CallPayment {
			out = append(out, r)
		}
	}
	return out
}

// TestRunPays: an agent of the orchestrator pays an agent runtime; the payment is counted, and named by
// the run's receipts, by agent_log.json and by the stored purchase.
func TestRunPays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trusted("wallet", "40")
	url, handler := w.runtime(t)
	o := w.open(t, fmt.Sprintf(payments, w.index), buyer{})
	task, run := o.ended(t, o.submit(t, input(url, "a", "b")))
	if task.Status != repute.TaskCompleted {
		t.Fatalf("task %s: %s", task.Status, run.Error)
	}
	got, receipts := o.bought(t, run), o.payments(t, run)
	if w.paid(t) != 20_000 || handler.count() != 2 || len(got) != 2 || len(receipts) != 2 || run.Used.ToolCalls != 2 {
		t.Fatalf("%d units, %d runs, %+v, %+v", w.paid(t), handler.count(), got, receipts)
	}
	for i, a := range got {
		p := a.Payment
		if a.Status != 200 || !strings.Contains(string(a.Body), `"run"`) || p.Agent != "eip155:31337:0xa:1" ||
			p.Dollars != "0.01" ||
			p.From != w.Account(paytest.PayerAccount).Address.Hex() || p.To != w.Payee().Hex() || a.At.IsZero() {
			t.Errorf("%+v of %s", p, a.Body)
		}
		if r := receipts[i]; !r.Done || r.Ref != p.Transaction ||
			!strings.HasPrefix(r.Summary, "paid 0.01 dollars to eip155:") {
			t.Errorf("%+v", r)
		}
		sent, err := w.Client().TransactionReceipt(t.Context(), common.HexToHash(p.Transaction))
		if err != nil || sent.Status != 1 {
			t.Errorf("transaction %s: %v", p.Transaction, err)
		}
	}
	stored, err := walletdb.Purchases(t.Context(), w.db, 10)
	if err != nil || len(stored) != 2 || stored[0].Task != task.ID || stored[0].Ended.IsZero() || stored[0].Call == "" {
		t.Errorf("%+v, %v", stored, err)
	}
	if err := rundb.CheckLease(t.Context(), w.db, rundb.Lease{Root: run.ID, Fence: 1}); !errors.Is(err,
		repute.ErrFenced) {
		t.Errorf("a run that has ended may still pay: %v", err)
	}
	module, err := rundb.Module(t.Context(), w.db, "buyer")
	ok(t, err)
	log, err := agentlog.Page(t.Context(), w.db, module, standard.Manifest{}, "", "")
	if err != nil || len(log.Runs) != 1 || len(log.Runs[0].Receipts) < 2 ||
		log.Runs[0].Receipts[0].Kind != repute.CallPayment ||
		log.Runs[0].Receipts[0].Ref != got[0].Payment.Transaction {
		t.Errorf("%+v, %v", log, err)
	}
}

// TestRunRefused lists requests that no run pays for: nothing is signed, nothing moves.
func TestRunRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url, handler := w.runtime(t)
	rules := fmt.Sprintf(payments, w.index)
	for _, c := range []struct {
		name, rules, low string
		agent            orchestrator.Module
		why              string
	}{
		{"a low score", rules, "19", buyer{}, "has a score of at least 19, 20 are needed"},
		{"nobody can be named", rules, "", buyer{}, "belongs to no agent"},
		{"over the cap of a call", strings.Replace(rules, "minScore", `maxCall: "0.009", minScore`, 1), "40", buyer{},
			"at most 0.009 are paid"},
		{"over the cap of a task", strings.Replace(rules, "minScore", `maxTask: "0.009", minScore`, 1), "40", buyer{},
			"0 of at most 0.009 were paid by task"},
		{"no payments in the policy", "version: \"1\"\n", "40", buyer{}, "the policy lets no agent pay"},
		{"an index that does not answer", fmt.Sprintf(payments, "http://127.0.0.1:1"), "40", buyer{}, "index:"},
		{"before Execute", rules, "40", buyer{early: true}, "are paid for in Execute alone, not in plan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.low != "" {
				w.trusted("wallet", c.low)
			}
			o := w.open(t, c.rules, c.agent)
			task, run := o.ended(t, o.submit(t, input(url, "a")))
			if task.Status != repute.TaskFailed || !strings.Contains(run.Error, c.why) {
				t.Errorf("task %s: %s; want %s", task.Status, run.Error, c.why)
			}
		})
		w.mu.Lock()
		w.answers = map[string]string{}
		w.mu.Unlock()
	}
	if w.paid(t) != 0 || handler.count() != 0 {
		t.Errorf("%d units, %d runs", w.paid(t), handler.count())
	}
}

// TestTaskCap: the answers of a task cost no more than its cap; another task has its own.
func TestTaskCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trusted("wallet", "40")
	url, handler := w.runtime(t)
	o := w.open(t, strings.Replace(fmt.Sprintf(payments, w.index), "minScore", `maxTask: "0.02", minScore`, 1), buyer{})
	task, run := o.ended(t, o.submit(t, input(url, "a", "b", "c")))
	if task.Status != repute.TaskFailed || !strings.Contains(run.Error, "0.02 of at most 0.02 were paid by task") ||
		w.paid(t) != 20_000 || handler.count() != 2 || len(o.payments(t, run)) != 3 {
		t.Errorf("%d units, task %s: %s", w.paid(t), task.Status, run.Error)
	}
	if task, run = o.ended(t, o.submit(t, input(url, "d"))); task.Status != repute.TaskCompleted ||
		w.paid(t) != 30_000 {
		t.Errorf("%d units, task %s: %s", w.paid(t), task.Status, run.Error)
	}
}

// TestRetryPaysOnce: a payment whose answer is lost stays open. A retry of the task asks with the same
// payment, and another request in its place is refused.
func TestRetryPaysOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.trusted("wallet", "40")
	w.shop.Lose(1000)
	o := w.open(t, fmt.Sprintf(payments, w.index), buyer{})
	task, run := o.ended(t, o.submit(t, input(w.url, "a")))
	if task.Status != repute.TaskFailed || !strings.Contains(run.Error, "its end is not known") || w.paid(t) != 10_000 {
		t.Fatalf("%d units, task %s: %s", w.paid(t), task.Status, run.Error)
	}
	if err := o.client.Retry(t.Context(), task.ID, repute.PhasePlan, "test"); err == nil ||
		!strings.Contains(err.Error(), "transactions, payments and calls") {
		t.Errorf("another plan might pay again: %v", err)
	}
	w.shop.Lose(0)
	ok(t, o.client.Retry(t.Context(), task.ID, 0, "test"))
	task, run = o.ended(t, task)
	if task.Status != repute.TaskCompleted || w.paid(t) != 10_000 || w.shop.Runs() != 1 {
		t.Fatalf("%d units, %d runs, task %s: %s", w.paid(t), w.shop.Runs(), task.Status, run.Error)
	}
	if got := o.bought(t, run); got[0].Payment == nil || len(o.payments(t, run)) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestSameCallSamePayment: one call is paid once, by any number of payers at the same time and with any
// request that its answer needs, and a call that was refused before anything was signed may be paid later.
func TestSameCallSamePayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rules, err := policy.Parse(fmt.Appendf(nil, payments, w.index))
	ok(t, err)
	pay := func() (outbound.PaidResponse, error) {
		return w.runs().Pay(t.Context(), rules.Spending(),
			outbound.Purchase{Call: "run/step/1", Agent: "buyer", Task: "t",
				PaidRequest: outbound.PaidRequest{HTTPRequest: outbound.HTTPRequest{Method: "POST", URL: w.url,
					Body: []byte("x")}}})
	}
	if _, err := pay(); err == nil || !strings.Contains(err.Error(), "belongs to no agent") {
		t.Fatalf("nobody is known: %v", err)
	}
	w.trusted("wallet", "40")
	var all sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]int{}
	for range 5 {
		all.Go(func() {
			a, err := pay()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else {
				ids[a.Payment.ID+a.Payment.Transaction]++
			}
		})
	}
	all.Wait()
	if len(ids) != 1 || w.paid(t) != 10_000 || w.shop.Runs() != 1 {
		t.Errorf("%v: %d units, %d runs", ids, w.paid(t), w.shop.Runs())
	}
	stopped := transaction.Refuse("removed", "the agent is gone")
	_, err = w.runs().Pay(t.Context(), rules.Spending(),
		outbound.Purchase{Call: "run/step/2", Agent: "buyer", Task: "t",
			PaidRequest: outbound.PaidRequest{HTTPRequest: outbound.HTTPRequest{URL: w.url}},
			Still:       func(context.Context) error { return stopped }})
	if err == nil || w.paid(t) != 10_000 {
		t.Errorf("an agent that may not act any more has paid: %v", err)
	}
}
