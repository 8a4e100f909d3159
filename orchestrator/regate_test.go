package orchestrator_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/rundb"
)

// careful is an agent that has a dry run, in which a test does what happens between the
// first trust check and the second.
type careful struct {
	*worker
	between func()
}

func (c careful) DryRun(context.Context, standard.Task, standard.Plan,
	*orchestrator.Context) (standard.DryRun, error) {
	c.between()
	return standard.DryRun{}, nil
}

// changing is a policy that is replaced while runs go on.
type changing struct {
	t   *testing.T
	now atomic.Pointer[policy.Policy]
}

func (c *changing) set(text string) {
	p, err := policy.Parse([]byte(text))
	if err != nil {
		c.t.Error(err)
		return
	}
	c.now.Store(p)
}

func unrated(effect string) string {
	return "version: \"1\"\ntrust: {unrated: " + effect + ", threshold: {minReputation: 10}}\n"
}

// A policy that is replaced in the middle of a run counts from the next decision on: the
// check before Execute denies, or waits for a person as the first one does, and nothing of
// the plan is done before that. Every decision names the policy that made it, and can be
// made again after the policy has changed.
func TestTrustIsCheckedAgainBeforeExecute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, then string
		answer      []bool // of a person, for each question
		task        repute.TaskStatus
		ran         int32
	}{
		"denied":            {"allow", "deny", nil, repute.TaskRejected, 0},
		"approved":          {"allow", "require_approval", []bool{true}, repute.TaskCompleted, 1},
		"refused":           {"allow", "require_approval", []bool{false}, repute.TaskRejected, 0},
		"approved at first": {"require_approval", "require_approval", []bool{true}, repute.TaskCompleted, 1},
		"unchanged":         {"allow", "allow", nil, repute.TaskCompleted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			p, ran := &changing{t: t}, atomic.Int32{}
			p.set(unrated(c.first))
			agent := careful{newWorker("plain"), func() { p.set(unrated(c.then)) }}
			agent.do = func(context.Context, standard.Step, map[string]json.RawMessage,
				*orchestrator.Context) (json.RawMessage, error) {
				ran.Add(1)
				return nil, nil
			}
			h.start(orchestrator.Options{Lenient: true, Policy: p.now.Load, Modules: []orchestrator.Module{agent}})
			task := h.submit(standard.Request{Coordinator: "plain"})
			for _, yes := range c.answer {
				h.awaits(task.Run)
				if n := ran.Load(); n != 0 {
					t.Errorf("%d steps were done while the run waits", n)
				}
				h.approve(task.Run, yes, "looked at it")
			}
			task, run := h.ended(task)
			if task.Status != c.task || ran.Load() != c.ran {
				t.Errorf("task %s, %d steps done: %s %s", task.Status, ran.Load(), run.Error, run.Reasons)
			}
			if c.ran == 0 && !strings.Contains(string(run.Reasons), "trust.unrated") {
				t.Errorf("reasons %s", run.Reasons)
			}
			h.gateDecisionsHold(run.ID)
		})
	}
}

// awaits waits until a run waits for a person.
func (h *house) awaits(id string) {
	h.t.Helper()
	h.until("run waits", func() bool {
		r, err := rundb.Run(h.t.Context(), h.db, id)
		ok(h.t, err)
		return r.Awaiting == repute.AwaitingApproval
	})
}

// gateDecisionsHold makes every trust decision of a run again by the policy that it names.
func (h *house) gateDecisionsHold(run string) {
	h.t.Helper()
	decisions, err := rundb.Decisions(h.t.Context(), h.db, run, 1000)
	ok(h.t, err)
	for _, d := range decisions {
		if d.Kind != repute.DecisionTrust {
			continue
		}
		var v trustgate.Decision
		ok(h.t, json.Unmarshal(d.Input, &v))
		if v.Policy != d.Policy || string(v.Decision.Effect) != d.Effect {
			h.t.Errorf("%s: %s by policy %x, its decision: %s by %s", d.Subject, d.Effect, d.Policy, v.Decision.Effect,
				v.Policy)
		}
		if err := trustgate.Verify(h.t.Context(), h.db, nil, v); err != nil {
			h.t.Errorf("%s: %v", d.Subject, err)
		}
	}
}

// The trust of a plan's other agents is checked when they are called: one that is refused
// does nothing, and one that a person must allow makes the whole task wait.
func TestTrustOfSubAgents(t *testing.T) {
	t.Parallel()
	const byAgent = "version: \"1\"\nrules:\n" +
		"  - {id: never, when: 'agent.slug == \"bad\"', effect: deny, reason: not that one}\n" +
		"  - {id: ask, when: 'agent.slug == \"odd\"', effect: require_approval, reason: look at it}\n"
	for slug, want := range map[string]repute.TaskStatus{"bad": repute.TaskFailed, "odd": repute.TaskCompleted} {
		t.Run(slug, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			head, hand, ran := newWorker("head"), newWorker(slug), atomic.Int32{}
			head.plan = func(standard.Task) standard.Plan {
				return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: slug}}}
			}
			hand.do = func(context.Context, standard.Step, map[string]json.RawMessage,
				*orchestrator.Context) (json.RawMessage, error) {
				ran.Add(1)
				return nil, nil
			}
			h.start(orchestrator.Options{Lenient: true, Policy: rules(t, byAgent),
				Modules: []orchestrator.Module{head, hand}})
			task := h.submit(standard.Request{Coordinator: "head"})
			if slug == "odd" {
				h.awaits(task.Run)
				runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
				ok(t, err)
				if i := slices.IndexFunc(runs, func(r repute.Run) bool { return r.Agent == slug }); i < 0 ||
					ran.Load() != 0 {
					t.Fatalf("%d steps done, runs %+v", ran.Load(), runs)
				} else {
					h.approve(runs[i].ID, true, "fine")
				}
			}
			task, run := h.ended(task)
			if task.Status != want || (ran.Load() == 1) != (want == repute.TaskCompleted) {
				t.Errorf("task %s, %d steps done: %s", task.Status, ran.Load(), run.Error)
			}
		})
	}
}

// finished counts the events by which the runs of a task ended, and fails where one that
// has ended has none, or several.
func (h *house) finished(task repute.Task, runs int) {
	h.t.Helper()
	list, err := rundb.TaskRuns(h.t.Context(), h.db, task.ID)
	ok(h.t, err)
	events, err := rundb.Events(h.t.Context(), h.db, task.Run, 0, 1000)
	ok(h.t, err)
	ends := map[string]int{}
	for _, e := range events {
		if e.Kind == "run.finished" {
			ends[e.Run]++
		}
	}
	for _, r := range list {
		if !r.Status.Ended() || ends[r.ID] != 1 {
			h.t.Errorf("run %s of agent %s is %s, with %d events of its end", r.ID, r.Agent, r.Status, ends[r.ID])
		}
	}
	if last := events[len(events)-1]; len(list) != runs || last.Kind != "run.finished" || last.Run != task.Run {
		h.t.Errorf("%d runs; the last event is %s of %s", len(list), last.Kind, last.Run)
	}
}

// Whatever ends a task ends the runs below it too, and each says so once.
func TestEveryRunEndsOnce(t *testing.T) {
	t.Parallel()
	const ask = "version: \"1\"\nrules:\n  - {id: ask, when: 'agent.slug == \"odd\"', effect: require_approval, reason: look at it}\n"
	split := func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "plain"}, {ID: "b", Agent: "odd"}}}
	}
	head, lone, deserter := newWorker("head"), newWorker("lone"), newWorker("deserter")
	head.plan, lone.plan = split, func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "plain"}}}
	}
	deserter.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "endless"}}}
	}
	begun, endless := make(chan struct{}, 1), newWorker("endless")
	endless.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		_ *orchestrator.Context) (json.RawMessage, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	deserter.execute = func(ctx context.Context, p standard.Plan, c *orchestrator.Context) (standard.Execution,
		error) {
		go func() { _, _ = c.RunPlan(context.WithoutCancel(ctx), p, nil) }()
		<-begun
		return standard.Execution{Success: true}, nil
	}
	h, _ := newHouse(t)
	h.start(orchestrator.Options{Lenient: true, Policy: rules(t, ask),
		Modules: []orchestrator.Module{head, lone, deserter, endless, newWorker("plain"), newWorker("odd")}})

	idle := h.submit(standard.Request{Coordinator: "head"})
	h.awaits(idle.Run)
	h.until("both steps have begun", func() bool {
		runs, err := rundb.TaskRuns(t.Context(), h.db, idle.ID)
		return err == nil && len(runs) == 3
	})
	ok(t, h.client.Cancel(t.Context(), idle.ID, "ann", "no longer wanted"))
	done, _ := h.ended(h.submit(standard.Request{Coordinator: "lone"}))
	left, run := h.ended(h.submit(standard.Request{Coordinator: "deserter"}))
	if left.Status != repute.TaskFailed || !strings.Contains(run.Error, "step a is running") {
		t.Errorf("an agent that leaves its plan: task %s: %s", left.Status, run.Error)
	}
	h.finished(idle, 3)
	h.finished(done, 2)
	h.finished(left, 2)
}
