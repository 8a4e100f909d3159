package orchestrator_test

import (
	"context"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/store/rundb"
)

// TestRunsOfADroppedPlanAreVerified finds no fault in a task that was canceled while a run below it
// waited, and was done by another plan.
func TestRunsOfADroppedPlanAreVerified(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, head, a, b := &outside{}, newWorker("head"), newWorker("hand-a"), newWorker("hand-b")
	by := "hand-a"
	head.plan = func(standard.Task) standard.Plan {
		plan := standard.Plan{Steps: []standard.Step{{ID: "a", Agent: by}}}
		by = "hand-b"
		return plan
	}
	a.do = sends(pays(1, "1"))
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: rules(t, askCalls),
		Modules: []orchestrator.Module{head, a, b}})
	task := h.submit(standard.Request{Coordinator: "head"})
	h.until("the run below waits", func() bool {
		runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
		ok(t, err)
		return len(runs) == 2 && runs[1].Awaiting != ""
	})
	ok(t, h.client.Cancel(context.Background(), task.ID, "ann", "wrong plan"))
	h.until("the task ended", func() bool {
		r, err := rundb.Run(t.Context(), h.db, task.Run)
		ok(t, err)
		return r.Status.Ended()
	})
	h.checked(task.Run)
	ok(t, h.client.Retry(t.Context(), task.ID, repute.PhasePlan, "ann"))
	task, run := h.ended(task)
	if task.Status != repute.TaskCompleted {
		t.Errorf("task %s: %s", task.Status, run.Error)
	}
	h.checked(task.Run)
}

// switching changes the policy during its dry run, so that trust is checked again in Execute.
type switching struct {
	*worker
	change func()
}

// DryRun declares the call that the worker sends.
func (s switching) DryRun(context.Context, standard.Task, standard.Plan,
	*orchestrator.Context) (standard.DryRun, error) {
	s.change()
	return standard.DryRun{Calls: []transaction.Tx{pays(1, "1")}}, nil
}

// TestExecuteThatFailsWhileItWaitsIsVerified finds no fault in a run whose agent is gone when the
// answer comes that it waited for, after trust was checked again.
func TestExecuteThatFailsWhileItWaitsIsVerified(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	p := &changing{t: t}
	p.set(askCalls)
	chain, agent := &outside{}, switching{newWorker("payer"), func() { p.set(askCalls + "# another\n") }}
	agent.do = sends(pays(1, "1"))
	stop := h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: p.now.Load,
		Modules: []orchestrator.Module{agent}})
	task := h.submit(standard.Request{Coordinator: "payer"})
	h.awaits(task.Run)
	h.checked(task.Run)
	stop()
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Policy: p.now.Load,
		Modules: []orchestrator.Module{newWorker("other")}})
	h.approve(task.Run, true, "fine")
	h.until("the run ended", func() bool {
		r, err := rundb.Run(t.Context(), h.db, task.Run)
		ok(t, err)
		return r.Status.Ended()
	})
	h.checked(task.Run)
}
