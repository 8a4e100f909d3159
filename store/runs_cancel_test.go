package store_test

import (
	"testing"

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
