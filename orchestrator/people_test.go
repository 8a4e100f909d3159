package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store/rundb"
)

func rules(t *testing.T, text string) func() *policy.Policy {
	p, err := policy.Parse([]byte(text))
	ok(t, err)
	return func() *policy.Policy { return p }
}

const askFirst = "version: \"1\"\nrules:\n  - {id: ask, when: 'task.goal.startsWith(\"dear\")', effect: require_approval, reason: dear tasks are looked at}\n"

// approve answers the one thing that a run waits for.
func (h *house) approve(run string, yes bool, why string) {
	h.t.Helper()
	open, err := rundb.Awaited(h.t.Context(), h.db, run)
	ok(h.t, err)
	if len(open) != 1 {
		h.t.Fatalf("run %s waits for %v", run, open)
	}
	ok(h.t, h.client.Approve(h.t.Context(), run, open[0].Subject, yes, "ann", why))
}

// A run that needs a person waits without a worker, and goes on or ends by the answer.
func TestApproval(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	h.start(orchestrator.Options{Lenient: true, Workers: 1, Policy: rules(t, askFirst),
		Modules: []orchestrator.Module{newWorker("plain")}})
	dear := h.submit(standard.Request{Coordinator: "plain", Goal: "dear 1"})
	refused := h.submit(standard.Request{Coordinator: "plain", Goal: "dear 2"})
	for _, task := range []repute.Task{dear, refused} {
		h.until("run waits", func() bool {
			r, err := rundb.Run(t.Context(), h.db, task.Run)
			ok(t, err)
			return r.Awaiting == repute.AwaitingApproval
		})
	}
	if task, _ := h.ended(h.submit(standard.Request{Coordinator: "plain",
		Goal: "cheap"})); task.Status != repute.TaskCompleted {
		t.Errorf("with one worker and two waiting runs a task is %s", task.Status)
	}
	ok(t, h.client.Approve(t.Context(), dear.Run, "policy", true, "ann", "fine"))
	if err := h.client.Approve(t.Context(), dear.Run, "policy", true, "ann", "again"); !errors.Is(err,
		repute.ErrConflict) {
		t.Errorf("a second answer: %v", err)
	}
	ok(t, h.client.Approve(t.Context(), refused.Run, "policy", false, "bob", "too dear"))
	if task, run := h.ended(dear); task.Status != repute.TaskCompleted {
		t.Errorf("approved task is %s: %s", task.Status, run.Error)
	}
	if task, run := h.ended(refused); task.Status != repute.TaskRejected ||
		!strings.Contains(string(run.Reasons), "too dear") {
		t.Errorf("refused task is %s: %s", task.Status, run.Reasons)
	}
	decisions, err := rundb.Decisions(t.Context(), h.db, dear.Run, 1000)
	ok(t, err)
	if !slices.ContainsFunc(decisions, func(d repute.RunDecision) bool {
		return d.Subject == "policy" &&
			d.Effect == "require_approval"
	}) {
		t.Errorf("decisions %+v", decisions)
	}
}

// Cancelling ends what runs within a hold, what waits at once.
func TestCancel(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	endless := newWorker("endless")
	endless.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		_ *orchestrator.Context) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	h.start(orchestrator.Options{Lenient: true, Policy: rules(t, askFirst), Modules: []orchestrator.Module{endless}})
	running, waiting := h.submit(standard.Request{Coordinator: "endless"}),
		h.submit(standard.Request{Coordinator: "endless", Goal: "dear"})
	h.until("one runs and one waits", func() bool {
		a, err := rundb.Run(t.Context(), h.db, running.Run)
		ok(t, err)
		b, err := rundb.Run(t.Context(), h.db, waiting.Run)
		ok(t, err)
		return a.Status == repute.RunRunning && b.Awaiting != ""
	})
	for _, task := range []repute.Task{running, waiting} {
		ok(t, h.client.Cancel(t.Context(), task.ID, "ann", "no longer wanted"))
		task, run := h.ended(task)
		if task.Status != repute.TaskCancelled || run.Status != repute.RunCancelled ||
			!strings.Contains(run.Error, "no longer wanted") {
			t.Errorf("task %s, run %s: %s", task.Status, run.Status, run.Error)
		}
		if err := h.client.Cancel(t.Context(), task.ID, "ann", "again"); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("cancelled again: %v", err)
		}
	}
}

// A retry takes over the phases before, and the steps that were completed.
func TestRetryFromFailedPhase(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	var first, second atomic.Int32
	head := newWorker("head")
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "first", Agent: "head"},
			{ID: "second", Agent: "head", DependsOn: []string{"first"}}}}
	}
	head.do = func(_ context.Context, s standard.Step, _ map[string]json.RawMessage,
		_ *orchestrator.Context) (json.RawMessage, error) {
		if s.ID == "first" {
			first.Add(1)
			return json.RawMessage("1"), nil
		}
		if second.Add(1) == 1 {
			return nil, errors.New("not today")
		}
		return json.RawMessage("2"), nil
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head}})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	if task.Status != repute.TaskFailed || !strings.Contains(run.Error, "not today") {
		t.Fatalf("task %s: %s", task.Status, run.Error)
	}
	if err := h.client.Retry(t.Context(), task.ID, repute.PhaseSummarize, "ann"); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("retried from behind the failure: %v", err)
	}
	ok(t, h.client.Retry(t.Context(), task.ID, 0, "ann"))
	task, run = h.ended(task)
	if task.Status != repute.TaskCompleted || run.Attempt != 2 || first.Load() != 1 || second.Load() != 2 {
		t.Errorf("task %s, attempt %d, steps ran %d and %d times: %s", task.Status, run.Attempt, first.Load(),
			second.Load(), run.Error)
	}
	if err := h.client.Retry(t.Context(), task.ID, 0, "ann"); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a completed task was retried: %v", err)
	}
}

// A process that stops gives its runs away; what was done stays done.
func TestAnotherEngineGoesOn(t *testing.T) {
	t.Parallel()
	h, url := newHouse(t)
	var first atomic.Int32
	begun := make(chan struct{}, 10)
	release := make(chan struct{})
	agent := func(blocks bool) *worker {
		w := newWorker("head")
		w.plan = func(standard.Task) standard.Plan {
			return standard.Plan{Steps: []standard.Step{{ID: "first", Agent: "head"},
				{ID: "second", Agent: "head", DependsOn: []string{"first"}}}}
		}
		w.do = func(ctx context.Context, s standard.Step, _ map[string]json.RawMessage,
			_ *orchestrator.Context) (json.RawMessage, error) {
			if s.ID == "first" {
				first.Add(1)
				return json.RawMessage("1"), nil
			}
			begun <- struct{}{}
			if !blocks {
				return json.RawMessage("2"), nil
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-release:
				return nil, errors.New("released")
			}
		}
		return w
	}
	stop := h.start(orchestrator.Options{Lenient: true, Drain: 200 * time.Millisecond,
		Modules: []orchestrator.Module{agent(true)}})
	task := h.submit(standard.Request{Coordinator: "head"})
	<-begun
	stop()
	other := &house{t, open(t, url), h.client}
	other.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{agent(false)}})
	task, run := other.ended(task)
	if task.Status != repute.TaskCompleted || first.Load() != 1 || run.Attempt != 1 {
		t.Errorf("task %s, first step ran %d times, attempt %d: %s", task.Status, first.Load(), run.Attempt, run.Error)
	}
	close(release)
}
