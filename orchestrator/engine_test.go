package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// worker is an agent whose methods a test may replace.
type worker struct {
	info    standard.Info
	plan    func(standard.Task) standard.Plan
	do      orchestrator.StepFunc
	execute func(context.Context, standard.Plan, *orchestrator.Context) (standard.Execution, error)
	verify  func() standard.Verification
	can     func() (bool, error)
	summary standard.Summary
}

func newWorker(slug string) *worker {
	return &worker{info: standard.Info{Slug: slug, DisplayName: slug, Version: "1.0.0",
		IdentityMode: standard.IdentityMode,
		Manifest:     standard.Manifest{Schema: standard.ManifestSchema, Name: slug, Slug: slug, Version: "1.0.0"}}}
}

func (w *worker) Info() standard.Info { return w.info }

func (w *worker) CanHandle(context.Context, standard.Task) (bool, error) {
	if w.can != nil {
		return w.can()
	}
	return true, nil
}

func (w *worker) Plan(_ context.Context, t standard.Task, _ *orchestrator.Context) (standard.Plan, error) {
	if w.plan != nil {
		return w.plan(t), nil
	}
	return standard.Plan{Steps: []standard.Step{{ID: "only", Description: t.Goal, Agent: w.info.Slug}}}, nil
}

func (w *worker) Execute(ctx context.Context, _ standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	if w.execute != nil {
		return w.execute(ctx, p, c)
	}
	do := w.do
	if do == nil {
		do = func(context.Context, standard.Step, map[string]json.RawMessage, *orchestrator.Context) (json.RawMessage,
			error) {
			return json.RawMessage(`{"done":true}`), nil
		}
	}
	return c.RunPlan(ctx, p, do)
}

func (w *worker) Verify(context.Context, standard.Task, standard.Execution,
	*orchestrator.Context) (standard.Verification, error) {
	if w.verify != nil {
		return w.verify(), nil
	}
	return standard.Verification{Checks: []standard.Check{{Name: "done", Passed: true}}, Score: 1}, nil
}

func (w *worker) Summarize(context.Context, standard.Task, standard.Execution, standard.Verification,
	*orchestrator.Context) (standard.Summary, error) {
	if s := w.summary; s.Text != "" || len(s.Receipts)+len(s.KeyActions)+len(s.Warnings) > 0 {
		return s, nil
	}
	return standard.Summary{Text: "did it"}, nil
}

// house is a database with an engine on it.
type house struct {
	t      *testing.T
	db     *store.DB
	client *tasks.Client
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const anything = "version: \"1\"\n"

func open(t *testing.T, url string) *store.DB {
	db, err := store.Open(t.Context(), url, store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	return db
}

func newHouse(t *testing.T) (*house, string) {
	url := pgtest.New(t)
	db := open(t, url)
	client, err := tasks.NewClient(db)
	ok(t, err)
	return &house{t, db, client}, url
}

// start runs an engine; the returned function ends it.
func (h *house) start(o orchestrator.Options) (stop func()) {
	h.t.Helper()
	if o.Policy == nil {
		p, err := policy.Parse([]byte(anything))
		ok(h.t, err)
		o.Policy = func() *policy.Policy { return p }
	}
	if o.Hold == 0 {
		o.Hold = 2 * time.Second
	}
	e, err := orchestrator.New(h.db, o)
	ok(h.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	stop = func() { cancel(); <-done }
	h.t.Cleanup(stop)
	for _, m := range o.Modules { // installed once the engine runs
		h.until("agent is installed",
			func() bool { _, err := rundb.Module(h.t.Context(), h.db, m.Info().Slug); return err == nil })
	}
	return stop
}

func (h *house) until(what string, f func() bool) {
	h.t.Helper()
	for end := time.Now().Add(60 * time.Second); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (h *house) submit(r standard.Request) repute.Task {
	h.t.Helper()
	if r.Goal == "" {
		r.Goal = "do it"
	}
	t, _, err := h.client.Submit(h.t.Context(), r)
	ok(h.t, err)
	return t
}

// ended waits for a task and gives its root run.
func (h *house) ended(t repute.Task) (repute.Task, repute.Run) {
	h.t.Helper()
	var run repute.Run
	h.until("task ends", func() bool {
		var err error
		run, err = rundb.Run(h.t.Context(), h.db, t.Run)
		ok(h.t, err)
		return run.Status.Ended()
	})
	t, err := rundb.Task(h.t.Context(), h.db, t.ID)
	ok(h.t, err)
	h.checked(run.ID)
	return t, run
}

func (h *house) phases(run string) (out []string) {
	h.t.Helper()
	list, err := rundb.Phases(h.t.Context(), h.db, run)
	ok(h.t, err)
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s:%s", p.Phase, p.Status))
	}
	return out
}

func TestRunGoesThroughNinePhases(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{newWorker("plain")}})
	task := h.submit(standard.Request{Coordinator: "plain", Key: "once"})
	again, added, err := h.client.Submit(t.Context(),
		standard.Request{Goal: "do it", Coordinator: "plain", Key: "once"})
	if ok(t, err); added || again.ID != task.ID {
		t.Errorf("the same key made task %s beside %s", again.ID, task.ID)
	}
	task, run := h.ended(task)
	if task.Status != repute.TaskCompleted || run.Status != repute.RunCompleted {
		t.Fatalf("task %s, run %s: %s", task.Status, run.Status, run.Error)
	}
	want := []string{"discover:ok", "plan:ok", "trust:ok", "policy:ok", "dry_run:ok", "execute:ok", "verify:ok",
		"summarize:ok", "record:ok"}
	if got := h.phases(run.ID); !slices.Equal(got, want) {
		t.Errorf("phases %v", got)
	}
	events, err := rundb.Events(t.Context(), h.db, run.Root, 0, 1000)
	ok(t, err)
	for i, e := range events {
		if e.Number != int64(i+1) {
			t.Errorf("event %d has number %d", i+1, e.Number)
		}
	}
	if last := events[len(events)-1]; last.Kind != "run.finished" {
		t.Errorf("the last event is %s", last.Kind)
	}
	if run.Used.Steps != 1 {
		t.Errorf("%d steps were counted", run.Used.Steps)
	}
}

func TestTaskOfAgentWithoutIdentityIsRejected(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.start(orchestrator.Options{Modules: []orchestrator.Module{newWorker("nobody")}})
	reputation := 50.0
	task, run := h.ended(h.submit(standard.Request{Coordinator: "nobody",
		Terms: standard.Terms{Threshold: policy.Threshold{MinReputation: &reputation}}}))
	if task.Status != repute.TaskRejected || run.Status != repute.RunFailed {
		t.Fatalf("task %s, run %s", task.Status, run.Status)
	}
	for _, reason := range []string{"trust.requireIdentity", "trust.unrated"} {
		if !strings.Contains(string(run.Reasons), reason) {
			t.Errorf("reasons lack %s: %s", reason, run.Reasons)
		}
	}
	if got := h.phases(run.ID); !slices.Equal(got, []string{"discover:ok", "plan:ok", "trust:rejected", "record:ok"}) {
		t.Errorf("phases %v", got)
	}
}

// Agents that misbehave fail their run with a reason, and nothing else.
func TestAgentsThatMisbehave(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	step := func(id string) standard.Step { return standard.Step{ID: id, Agent: "x"} }
	cases := map[string]struct {
		agent worker
		terms standard.Terms
		want  string
	}{
		"panics": {worker{do: func(context.Context, standard.Step, map[string]json.RawMessage,
			*orchestrator.Context) (json.RawMessage, error) {
			panic("boom")
		}}, standard.Terms{}, "boom"},
		"panics-early": {worker{can: func() (bool, error) { panic("early") }}, standard.Terms{}, "early"},
		"refuses":      {worker{can: func() (bool, error) { return false, nil }}, standard.Terms{}, "cannot handle"},
		"hangs": {worker{execute: func(ctx context.Context, _ standard.Plan,
			_ *orchestrator.Context) (standard.Execution, error) {
			select {}
		}}, standard.Terms{Budget: policy.Bounds{RuntimeMS: new(int64(500))}}, "ignored its cancellation"},
		"slow": {worker{execute: func(ctx context.Context, _ standard.Plan,
			_ *orchestrator.Context) (standard.Execution, error) {
			<-ctx.Done()
			return standard.Execution{}, ctx.Err()
		}}, standard.Terms{Budget: policy.Bounds{RuntimeMS: new(int64(500))}}, "maxRuntimeMs"},
		"plans-much": {worker{plan: func(standard.Task) (p standard.Plan) {
			for i := range 10_000 {
				p.Steps = append(p.Steps, step(fmt.Sprint(i)))
			}
			return p
		}}, standard.Terms{}, "has 10000 steps"},
		"plans-circles": {worker{plan: func(standard.Task) standard.Plan {
			return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "plans-circles", DependsOn: []string{"b"}},
				{ID: "b", Agent: "plans-circles", DependsOn: []string{"a"}}}}
		}}, standard.Terms{}, "wait for each other"},
		"plans-strangers": {worker{plan: func(standard.Task) standard.Plan {
			return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "stranger"}}}
		}}, standard.Terms{}, "not registered"},
		"claims": {worker{execute: func(context.Context, standard.Plan, *orchestrator.Context) (standard.Execution,
			error) {
			return standard.Execution{Success: true, ReceiptIDs: []string{"77"}}, nil
		}}, standard.Terms{}, "there is no receipt"},
		"claims-score": {worker{verify: func() standard.Verification { return standard.Verification{Score: 7} }},
			standard.Terms{}, "out of range"},
		"says-nothing-holds": {worker{verify: func() standard.Verification {
			return standard.Verification{Checks: []standard.Check{{Name: "done", Passed: true}}}
		}}, standard.Terms{}, "verification score is 0"},
		"claims-in-a-step": {worker{do: func(context.Context, standard.Step, map[string]json.RawMessage,
			*orchestrator.Context) (json.RawMessage, error) {
			return json.RawMessage(`{"receiptIds":["78"]}`), nil
		}}, standard.Terms{}, "there is no receipt"},
		"claims-deep-in-a-step": {worker{do: func(context.Context, standard.Step, map[string]json.RawMessage,
			*orchestrator.Context) (json.RawMessage, error) {
			return json.RawMessage(`[{"parts":[{"of":{"receiptIds":[80]}}]}]`), nil
		}}, standard.Terms{}, `there is no receipt "80"`},
		"claims-in-a-text": {worker{summary: standard.Summary{Text: "Paid, see receipts #81 and 82."}},
			standard.Terms{}, "there is no receipt"},
		"claims-in-a-remark": {worker{summary: standard.Summary{Warnings: []string{"receipt id: 83"}}},
			standard.Terms{}, `there is no receipt "83"`},
		"claims-a-transaction": {worker{summary: standard.Summary{KeyActions: []string{"paid in transaction 0x" +
			strings.Repeat("Ab", 32)}}}, standard.Terms{},
			"there is no receipt \"0x" + strings.Repeat("ab", 32)},
		"claims-in-a-summary": {worker{summary: standard.Summary{Receipts: []string{"79"}}}, standard.Terms{},
			"there is no receipt"},
	}
	var modules []orchestrator.Module
	for slug, c := range cases {
		agent := c.agent
		agent.info = newWorker(slug).info
		modules = append(modules, &agent)
	}
	h.start(orchestrator.Options{Lenient: true, Modules: modules})
	tasks := map[string]repute.Task{}
	for slug, c := range cases {
		tasks[slug] = h.submit(standard.Request{Coordinator: slug, Terms: c.terms})
	}
	for slug, c := range cases {
		task, run := h.ended(tasks[slug])
		if task.Status != repute.TaskFailed || !strings.Contains(run.Error, c.want) {
			t.Errorf("%s: task %s, run %s: %q lacks %q", slug, task.Status, run.Status, run.Error, c.want)
		}
	}
}

type toolFunc func(ctx context.Context, key string, input json.RawMessage) (json.RawMessage, error)

func (f toolFunc) Call(ctx context.Context, _ transaction.Origin, key string,
	input json.RawMessage) (json.RawMessage, error) {
	return f(ctx, key, input)
}

// No call is made beyond the budget, by one agent or by several together.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	var calls atomic.Int32
	echo := toolFunc(func(_ context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		calls.Add(1)
		return in, nil
	})
	greedy := func(_ context.Context, s standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		for i := range 100 {
			if _, err := c.Tool(context.Background(), "echo", json.RawMessage(fmt.Sprint(i))); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	head, hand := newWorker("head"), newWorker("hand")
	head.do, hand.do = greedy, greedy
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "head"}, {ID: "b", Agent: "hand"}}}
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head, hand},
		Tools: map[string]orchestrator.Tool{"echo": echo}})
	_, run := h.ended(h.submit(standard.Request{Coordinator: "head",
		Terms: standard.Terms{Budget: policy.Bounds{ToolCalls: new(int64(7))}}}))
	if calls.Load() != 7 || run.Used.ToolCalls != 7 || !strings.Contains(run.Error, "maxToolCalls") {
		t.Errorf("%d calls were made, %d counted: %s", calls.Load(), run.Used.ToolCalls, run.Error)
	}
	runs, err := rundb.TaskRuns(t.Context(), h.db, run.Task)
	if ok(t, err); len(runs) != 2 || runs[1].Parent != run.ID || runs[1].ParentStep != "b" {
		t.Errorf("runs %+v", runs)
	}
}

// Steps wait for those they depend on, get their results, and run beside the others.
func TestPlanIsADAG(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	both := make(chan struct{}, 2)
	head := newWorker("head")
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{
			{ID: "sum", Agent: "head", DependsOn: []string{"left", "right"}},
			{ID: "left", Agent: "head"}, {ID: "right", Agent: "head"}}}
	}
	head.do = func(ctx context.Context, s standard.Step, inputs map[string]json.RawMessage,
		_ *orchestrator.Context) (json.RawMessage, error) {
		if s.ID == "sum" {
			return json.RawMessage(fmt.Sprintf(`"%s%s"`, inputs["left"], inputs["right"])), nil
		}
		both <- struct{}{}
		for len(both) < 2 { // each needs the other to have begun
			select {
			case <-ctx.Done():
				return nil, errors.New("ran alone")
			case <-time.After(time.Millisecond):
			}
		}
		return json.RawMessage("1"), nil
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head}})
	_, run := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	steps, err := rundb.Steps(t.Context(), h.db, run.ID)
	if ok(t, err); run.Status != repute.RunCompleted || string(steps[len(steps)-1].Result) != `"11"` {
		t.Errorf("run %s %s, steps %+v", run.Status, run.Error, steps)
	}
}
