package oaf_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/agent/llm/modelfile"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	"repute/internal/pgtest"
	format "repute/manifest/oaf"
	"repute/manifest/oaf/skill"
	"repute/orchestrator"
	"repute/orchestrator/oaf"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// house is a database with engines that run agents of the Open Agent Format on a scripted model.
type house struct {
	t      *testing.T
	db     *store.DB
	client *tasks.Client
	models *modelfile.Table
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newHouse(t *testing.T, s *modeltest.Server) *house {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	client, err := tasks.NewClient(db)
	ok(t, err)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return &house{t, db, client, &modelfile.Table{Default: "scripted", Table: map[string]modelfile.Entry{
		"scripted": {Provider: modelfile.Anthropic, Model: "scripted", BaseURL: srv.URL, InputUSD: 1_000_000,
			OutputUSD: 2_000_000}}}}
}

// agent is an agent with a skill.
func agent(key string, change func(*format.Agent)) *format.Agent {
	a := &format.Agent{Name: key, VendorKey: "acme", AgentKey: key, Version: "1.0.0", Slug: "acme/" + key,
		Description: "answers", Body: "You answer questions.", Config: format.Config{MaxTokens: 50},
		LocalSkills: []skill.Skill{{Dir: "weather", Name: "weather", Description: "tells the weather",
			Body: "Look out of the window."}}}
	if change != nil {
		change(a)
	}
	return a
}

// start runs an engine with agents; the returned function ends it.
func (h *house) start(rules string, defs ...*format.Agent) (stop func()) {
	h.t.Helper()
	var modules []orchestrator.Module
	for _, d := range defs {
		a, err := oafagent.New(h.t.Context(), d, oafagent.Options{Models: h.models, Client: &http.Client{},
			DB: h.db, Getenv: func(string) string { return "" }})
		ok(h.t, err)
		m, err := oaf.New(a, nil, "")
		ok(h.t, err)
		modules = append(modules, m)
	}
	return h.run(rules, modules...)
}

// run runs an engine with modules; the returned function ends it.
func (h *house) run(rules string, modules ...orchestrator.Module) (stop func()) {
	h.t.Helper()
	p, err := policy.Parse([]byte("version: \"1\"\n" + rules))
	ok(h.t, err)
	e, err := orchestrator.New(h.db, orchestrator.Options{Modules: modules, Lenient: true, Hold: 2 * time.Second,
		Drain: 200 * time.Millisecond, Policy: func() *policy.Policy { return p }})
	ok(h.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	stop = func() { cancel(); <-done }
	h.t.Cleanup(stop)
	for _, m := range modules {
		h.until("the agent is installed", func() bool {
			_, err := rundb.Module(h.t.Context(), h.db, m.Info().Slug)
			return err == nil
		})
	}
	return stop
}

// until waits for a condition.
func (h *house) until(what string, is func() bool) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("%s: it did not happen", what)
		}
	}
}

// awaited waits until a task's root run waits for a person, and returns what it waits for.
func (h *house) awaited(task repute.Task) rundb.Decision {
	h.t.Helper()
	var open []rundb.Decision
	h.until("the run waits", func() bool {
		runs, err := rundb.TaskRuns(h.t.Context(), h.db, task.ID)
		ok(h.t, err)
		if len(runs) == 0 || runs[0].Awaiting == "" {
			return false
		}
		open, err = rundb.Awaited(h.t.Context(), h.db, runs[0].ID)
		ok(h.t, err)
		return len(open) > 0
	})
	return open[0]
}

// submit asks for a task.
func (h *house) submit(slug string, b policy.Bounds) repute.Task {
	h.t.Helper()
	task, _, err := h.client.Submit(h.t.Context(), standard.Request{Goal: "How is the weather?", Coordinator: slug,
		Terms: standard.Terms{Budget: b}})
	ok(h.t, err)
	return task
}

// ended waits for the end of a task and returns its root run.
func (h *house) ended(task repute.Task) repute.Run {
	h.t.Helper()
	var run repute.Run
	h.until("the task ends", func() bool {
		runs, err := rundb.TaskRuns(h.t.Context(), h.db, task.ID)
		ok(h.t, err)
		if len(runs) > 0 {
			run = runs[0]
		}
		return run.Status.Ended()
	})
	return run
}

// kinds counts the receipts of a run by kind.
func (h *house) kinds(run string) map[repute.CallKind]int {
	h.t.Helper()
	list, err := rundb.Receipts(h.t.Context(), h.db, run)
	ok(h.t, err)
	out := map[repute.CallKind]int{}
	for _, r := range list {
		out[r.Kind]++
	}
	return out
}

func call(name, input string) modeltest.Turn {
	return modeltest.Turn{Calls: []modeltest.Call{{Name: name, Input: input}}}
}

// A run asks the model, reads a skill and ends with the answer. Each call has a receipt, the text is published
// as it arrives, and tokens and cost are counted.
func TestRun(t *testing.T) {
	s := modeltest.New(call("skill", `{"name":"weather"}`), modeltest.Turn{Text: "It rains today."})
	h := newHouse(t, s)
	h.start("", agent("forecaster", nil))
	run := h.ended(h.submit("acme-forecaster", policy.Bounds{}))
	if run.Status != repute.RunCompleted {
		t.Fatalf("%s: %s", run.Status, run.Error)
	}
	if k := h.kinds(run.ID); k[repute.CallModel] != 2 || k[repute.CallTool] != 1 {
		t.Errorf("receipts %v", k)
	}
	if run.Used.Tokens != 30 || run.Used.Cost != 40 || run.Used.ToolCalls != 3 {
		t.Errorf("used %+v, want 30 tokens for 40 millionths of a dollar", run.Used)
	}
	if !s.Seen()[1].Contains("Look out of the window.") || s.Seen()[0].Contains("Look out of the window.") {
		t.Error("the skill's instructions are read on demand alone")
	}
	events, err := rundb.Events(t.Context(), h.db, run.ID, 0, 100)
	ok(t, err)
	text := ""
	for _, e := range events {
		if e.Kind == "model.text" {
			var d struct{ Text string }
			ok(t, json.Unmarshal(e.Data, &d))
			text += d.Text
		}
	}
	if text != "It rains today." {
		t.Errorf("published %q", text)
	}
}

// The budget of a task bounds tokens and cost: the run fails, and not more is used than it allows.
func TestBudget(t *testing.T) {
	for name, b := range map[string]policy.Bounds{"maxTokens": {Tokens: new(int64(1000))},
		"maxCostUsd": {CostUSD: "0.001"}} {
		t.Run(name, func(t *testing.T) {
			turn := call("skill", `{"name":"weather"}`)
			turn.Input, turn.Output = 150, 40
			s := modeltest.New(turn)
			h := newHouse(t, s)
			h.start("", agent("forecaster", nil))
			run := h.ended(h.submit("acme-forecaster", b))
			if run.Status != repute.RunFailed || !strings.Contains(run.Error, name) {
				t.Fatalf("%s: %s", run.Status, run.Error)
			}
			if n := int64(len(s.Seen())); n < 2 || run.Used.Tokens != n*190 || run.Used.Tokens > 1000 ||
				run.Used.Cost > 1000 {
				t.Errorf("used %+v in %d calls", run.Used, len(s.Seen()))
			}
		})
	}
}

// A policy's limit is the bound of tasks that name none, and refuses one that names more.
func TestPolicyLimit(t *testing.T) {
	h := newHouse(t, modeltest.New(modeltest.Turn{Text: "sun"}))
	h.start("limits: {maxTokens: 2000, maxCostUsd: \"0.5\"}\n", agent("forecaster", nil))
	if run := h.ended(h.submit("acme-forecaster", policy.Bounds{})); run.Status != repute.RunCompleted ||
		run.Limits.Tokens != 2000 || run.Limits.Cost != 500_000 {
		t.Errorf("%s: %s, limits %+v", run.Status, run.Error, run.Limits)
	}
	if run := h.ended(h.submit("acme-forecaster",
		policy.Bounds{Tokens: new(int64(2001))})); run.Status != repute.RunFailed ||
		!strings.Contains(run.Error, "maxTokens") {
		t.Errorf("%s: %s", run.Status, run.Error)
	}
}

// The bound of the agent's own file holds where the task has none.
func TestOwnBudget(t *testing.T) {
	turn := call("skill", `{"name":"weather"}`)
	turn.Input, turn.Output = 150, 40
	h := newHouse(t, modeltest.New(turn))
	h.start("", agent("forecaster", func(a *format.Agent) {
		a.Harness = map[string]json.RawMessage{"repute": json.RawMessage(`{"maxTokens": 900}`)}
	}))
	run := h.ended(h.submit("acme-forecaster", policy.Bounds{}))
	if run.Status != repute.RunFailed || !strings.Contains(run.Error, "maxTokens") || run.Used.Tokens > 900 {
		t.Errorf("%s: %s, used %+v", run.Status, run.Error, run.Used)
	}
}

// A run that another engine continues does not pay the model again for turns that were answered.
func TestResume(t *testing.T) {
	wait := make(chan struct{})
	s := &modeltest.Server{Script: func(n int, _ *modeltest.Request) modeltest.Turn {
		switch n {
		case 0:
			return call("skill", `{"name":"weather"}`)
		case 1: // cut off by the end of the first engine
			return modeltest.Turn{Text: "never read", Wait: wait}
		}
		return modeltest.Turn{Text: "It snows."}
	}}
	h := newHouse(t, s)
	stop := h.start("", agent("forecaster", nil))
	task := h.submit("acme-forecaster", policy.Bounds{})
	h.until("the model is asked twice", func() bool { return len(s.Seen()) == 2 })
	stop()
	h.start("", agent("forecaster", nil))
	run := h.ended(task)
	if run.Status != repute.RunCompleted {
		t.Fatalf("%s: %s", run.Status, run.Error)
	}
	if n := len(s.Seen()); n != 3 {
		t.Errorf("%d requests, want 3: the first turn is not asked again", n)
	}
	if k := h.kinds(run.ID); k[repute.CallModel] != 2 || run.Used.Tokens != 30 {
		t.Errorf("receipts %v, used %+v", k, run.Used)
	}
}

// An agent that requires confirmations waits for a person before it acts; turns before are not paid twice, and a
// refusal is told to the model.
func TestConfirmation(t *testing.T) {
	for name, yes := range map[string]bool{"approved": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(call("agent_acme_helper", `{"task":"help"}`), modeltest.Turn{Text: "done"},
				modeltest.Turn{Text: "done"})
			h := newHouse(t, s)
			main := agent("main", func(a *format.Agent) {
				a.Config.RequireConfirmation = true
				a.Agents = []format.AgentRef{{Vendor: "acme", Agent: "helper"}}
			})
			h.start("", main, agent("helper", nil))
			task := h.submit("acme-main", policy.Bounds{})
			var run repute.Run
			h.until("the run waits", func() bool {
				runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
				ok(t, err)
				run = runs[0]
				return run.Awaiting != "" || run.Status.Ended()
			})
			if run.Awaiting == "" || len(s.Seen()) != 1 {
				t.Fatalf("%s %s, %d requests", run.Status, run.Error, len(s.Seen()))
			}
			open, err := rundb.Awaited(t.Context(), h.db, run.ID)
			ok(t, err)
			ok(t, h.client.Approve(t.Context(), run.ID, open[0].Subject, yes, "alice", "test"))
			run = h.ended(task)
			if run.Status != repute.RunCompleted {
				t.Fatalf("%s: %s", run.Status, run.Error)
			}
			runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
			ok(t, err)
			if got := len(runs) == 2; got != yes {
				t.Errorf("%d runs", len(runs))
			}
			last := s.Seen()[len(s.Seen())-1]
			if !yes && !last.Contains("alice refused") {
				t.Errorf("the model is told %q", last.Texts)
			}
		})
	}
}

// Work that a model delegates is a run of its own that policy and trust gate decide about, and its answer is
// the result of the tool.
func TestDelegation(t *testing.T) {
	for name, c := range map[string]struct{ rules, told string }{
		"allowed": {"", "forty-two"},
		"denied": {"rules:\n  - {id: no-helper, when: 'agent.slug == \"acme-helper\"', effect: deny, reason: no-helper}\n",
			"no-helper"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &modeltest.Server{Script: func(_ int, r *modeltest.Request) modeltest.Turn {
				switch {
				case r.Contains("You help."):
					return modeltest.Turn{Text: "forty-two"}
				case r.Contains("forty-two"), r.Contains("rejected"), r.Contains("no-helper"):
					return modeltest.Turn{Text: "the end"}
				}
				return call("agent_acme_helper", `{"task":"What is the answer?"}`)
			}}
			h := newHouse(t, s)
			main := agent("main", func(a *format.Agent) {
				a.Agents = []format.AgentRef{{Vendor: "acme", Agent: "helper", Delegations: []string{"answers"}}}
			})
			h.start(c.rules, main, agent("helper", func(a *format.Agent) { a.Body = "You help." }))
			run := h.ended(h.submit("acme-main", policy.Bounds{}))
			seen := s.Seen()
			if run.Status != repute.RunCompleted || !seen[len(seen)-1].Contains(c.told) {
				t.Fatalf("%s: %s; told %q", run.Status, run.Error, seen[len(seen)-1].Texts)
			}
			if run.Used.Steps != 3-len(c.rules)/max(len(c.rules), 1) {
				t.Errorf("%d steps", run.Used.Steps)
			}
		})
	}
}

// The agent of orchestration.fallback answers where the model of the coordinator fails.
func TestFallback(t *testing.T) {
	s := &modeltest.Server{Script: func(_ int, r *modeltest.Request) modeltest.Turn {
		if r.Contains("You help.") {
			return modeltest.Turn{Text: "I took over."}
		}
		return modeltest.Turn{Status: 400}
	}}
	h := newHouse(t, s)
	main := agent("main", func(a *format.Agent) {
		a.Agents = []format.AgentRef{{Agent: "helper", Vendor: "acme"}}
		a.Orchestration = format.Orchestration{Entrypoint: "main", Fallback: "helper"}
	})
	h.start("", main, agent("helper", func(a *format.Agent) { a.Body = "You help." }))
	run := h.ended(h.submit("acme-main", policy.Bounds{}))
	phases, err := rundb.Phases(t.Context(), h.db, run.ID)
	ok(t, err)
	if run.Status != repute.RunCompleted || !strings.Contains(string(phases[len(phases)-2].Result), "I took over.") {
		t.Fatalf("%s: %s, %s", run.Status, run.Error, phases[len(phases)-2].Result)
	}
}

// A model that fails, loops or breaks off ends the run with the reason in its record.
func TestBadModel(t *testing.T) {
	for name, c := range map[string]struct {
		turn modeltest.Turn
		want string
	}{
		"loops":   {call("skill", `{"name":"weather"}`), "did not end after 20"},
		"429":     {modeltest.Turn{Status: 429}, "refuses for now"},
		"is cut":  {modeltest.Turn{Text: "a b c d", Cut: true}, "broke off"},
		"nothing": {modeltest.Turn{Text: " "}, "gave no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, modeltest.New(c.turn))
			h.start("", agent("forecaster", nil))
			run := h.ended(h.submit("acme-forecaster", policy.Bounds{}))
			if run.Status != repute.RunFailed || !strings.Contains(run.Error, c.want) {
				t.Errorf("%s: %s", run.Status, run.Error)
			}
		})
	}
}

// An agent that names an onchain identity is gated like any other: the task's threshold asks for its identity,
// which nothing proves here, and the model is never asked.
func TestIdentityIsGated(t *testing.T) {
	s := modeltest.New(modeltest.Turn{Text: "never"})
	h := newHouse(t, s)
	def := agent("forecaster", nil)
	a, err := oafagent.New(t.Context(), def, oafagent.Options{Models: h.models,
		Getenv: func(string) string { return "" }})
	ok(t, err)
	id, err := repute.ParseAgentRef("eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:7")
	ok(t, err)
	m, err := oaf.New(a, &repute.AgentID{ChainID: id.ChainID, Registry: *id.Registry, TokenID: id.TokenID}, "")
	ok(t, err)
	if e := m.Info().Manifest.ERC8004; e == nil || e.AgentID != "7" || e.ChainID != 1 {
		t.Fatalf("manifest %+v", m.Info().Manifest)
	}
	h.run("", m)
	task, _, err := h.client.Submit(t.Context(), standard.Request{Goal: "x", Coordinator: "acme-forecaster",
		Terms: standard.Terms{Threshold: policy.Threshold{RequireIdentity: true}}})
	ok(t, err)
	run := h.ended(task)
	if run.Status != repute.RunFailed || run.Phase != repute.PhaseRecord || len(s.Seen()) != 0 || len(run.Reasons) < 3 {
		t.Errorf("%s: %s, %s; %d requests", run.Status, run.Error, run.Reasons, len(s.Seen()))
	}
}

// Sub-agents without a directory are registered agents: one that is not registered fails the plan, before any
// model is asked.
func TestRegisteredSubAgent(t *testing.T) {
	s := modeltest.New(modeltest.Turn{Text: "never"})
	h := newHouse(t, s)
	h.start("", agent("main", func(a *format.Agent) {
		a.Agents = []format.AgentRef{{Vendor: "acme", Agent: "remote"}}
	}))
	run := h.ended(h.submit("acme-main", policy.Bounds{}))
	if run.Status != repute.RunFailed || !strings.Contains(run.Error,
		`"acme-remote" is not registered`) || len(s.Seen()) != 0 {
		t.Errorf("%s: %s; %d requests", run.Status, run.Error, len(s.Seen()))
	}
}

// A sub-agent that was found in a directory is called, also where its entry does not name its vendor.
func TestLocalSubAgent(t *testing.T) {
	s := &modeltest.Server{Script: func(n int, r *modeltest.Request) modeltest.Turn {
		if n == 0 {
			return call("agent_acme_helper", `{"task":"help"}`)
		}
		return modeltest.Turn{Text: "done"}
	}}
	h := newHouse(t, s)
	helper := agent("helper", nil)
	h.start("", agent("main", func(a *format.Agent) {
		a.Agents = []format.AgentRef{{Agent: "helper", Local: helper}}
	}), helper)
	if run := h.ended(h.submit("acme-main", policy.Bounds{})); run.Status != repute.RunCompleted || len(s.Seen()) != 3 {
		t.Errorf("%s: %s; %d requests", run.Status, run.Error, len(s.Seen()))
	}
}

// Agents of triggers whose event is a tag of the task work first, and the agent sees their results.
func TestTrigger(t *testing.T) {
	s := &modeltest.Server{Script: func(_ int, r *modeltest.Request) modeltest.Turn {
		if r.Contains("You help.") {
			return modeltest.Turn{Text: "checked the change"}
		}
		return modeltest.Turn{Text: "all is well"}
	}}
	h := newHouse(t, s)
	h.start("", agent("main", func(a *format.Agent) {
		a.Agents = []format.AgentRef{{Vendor: "acme", Agent: "helper", Delegations: []string{"review"}}}
		a.Orchestration.Triggers = []format.Trigger{{Event: "code-change", Action: "review"}}
	}), agent("helper", func(a *format.Agent) { a.Body = "You help." }))
	for _, tags := range [][]string{{"code-change"}, nil} {
		before := len(s.Seen())
		task, _, err := h.client.Submit(t.Context(), standard.Request{Goal: "x", Coordinator: "acme-main",
			Terms: standard.Terms{Tags: tags}})
		ok(t, err)
		run, seen := h.ended(task), s.Seen()
		if run.Status != repute.RunCompleted || seen[len(seen)-1].Contains("checked the change") != (tags != nil) ||
			len(seen)-before != 1+len(tags) {
			t.Errorf("%v: %s: %s; %d requests, the last %q", tags, run.Status, run.Error, len(seen)-before,
				seen[len(seen)-1].Texts)
		}
	}
}
