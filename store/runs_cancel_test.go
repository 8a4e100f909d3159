package store_test

import (
	"testing"
	"time"

	"repute"
	"repute/store/rundb"
)

// A task that is cancelled without a reason says who did it, and no more.
func TestCancelWithoutReason(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	run, _ := heldRun(t, db)
	for reason, want := range map[string]string{"": "by ann", "late": "by ann: late"} {
		ok(t, rundb.CancelTask(ctx, db, run.Task, "ann", reason))
		var got string
		ok(t, db.Pool().QueryRow(ctx, `select cancel from runs where id = $1`, run.ID).Scan(&got))
		if got != want {
			t.Errorf("cancelled %q, want %q", got, want)
		}
	}
}

// TestCancelBeforeTheWait ends a task that was canceled while a phase was done that then waits for
// an answer.
func TestCancelBeforeTheWait(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	run, lease := heldRun(t, db)
	ok(t, rundb.CancelTask(ctx, db, run.Task, "ann", "late"))
	now := time.Now()
	ok(t, rundb.SavePhase(ctx, db, lease, rundb.PhaseOutcome{Run: run.ID, Status: repute.RunPending,
		Awaiting: repute.AwaitingApproval,
		RunPhase: repute.RunPhase{Attempt: 1, Phase: repute.PhasePolicy, Status: repute.PhaseWaiting, Started: now,
			Ended: now}}, nil))
	got, err := rundb.Run(ctx, db, run.ID)
	ok(t, err)
	task, err := rundb.Task(ctx, db, run.Task)
	if ok(t, err); got.Status != repute.RunCancelled || got.Awaiting != "" || task.Status != repute.TaskCancelled {
		t.Errorf("run %s, awaiting %q, task %s", got.Status, got.Awaiting, task.Status)
	}
	events, err := rundb.Events(ctx, db, run.ID, 0, 100)
	if ok(t, err); len(events) < 2 || events[len(events)-1].Kind != "run.finished" {
		t.Errorf("events %+v", events)
	}
}
