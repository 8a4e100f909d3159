package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// claimsHold: each receipt that the execution names is there.
func (w *work) claimsHold(ctx context.Context, receipts []repute.Receipt) (standard.Check, error) {
	own, inner := w.done.Claims()
	if c := standard.ReceiptsExist(own, receipts); !c.Passed || len(inner) == 0 {
		return c, nil
	}
	all, err := w.taskReceipts(ctx)
	return standard.ReceiptsExist(inner, all), err
}

// taskReceipts returns the receipts of all runs of the task.
func (w *work) taskReceipts(ctx context.Context) (all []repute.Receipt, err error) {
	runs, err := rundb.TaskRuns(ctx, w.e.db, w.Run.Task)
	for i := 0; err == nil && i < len(runs); i++ {
		var list []repute.Receipt
		list, err = rundb.Receipts(ctx, w.e.db, runs[i].ID)
		all = append(all, list...)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	return all, nil
}

// summaryHolds refuses a summary that names receipts which no run of the task has.
func (w *work) summaryHolds(ctx context.Context, s *standard.Summary) error {
	claimed := s.Claims()
	if len(claimed) == 0 {
		return nil
	}
	all, err := w.taskReceipts(ctx)
	if err != nil {
		return err
	}
	if c := standard.ReceiptsExist(claimed, all); !c.Passed {
		return fmt.Errorf("the agent's summary: %s", c.Details)
	}
	return nil
}

// attemptKeys returns the journal keys that a transaction may have, one per attempt.
func (w *work) attemptKeys(key string) (out []string) {
	for attempt := range max(1, w.Run.Attempt) {
		out = append(out, journal.AttemptKey(attempt+1, key))
	}
	return out
}

// earlier returns a transaction that the run journaled in this attempt or before. A failed
// transaction of an earlier attempt counts as unknown, so that this attempt may send it, if the
// wallet never signed it or reports that it can no longer have an effect. A transaction that may
// still be mined is followed to its end.
func (w *work) earlier(ctx context.Context, r repute.Receipt, key string) (before repute.Receipt, known bool,
	err error) {
	before, known, err = rundb.LastCall(ctx, w.e.db, r.Run, r.Step, w.attemptKeys(key))
	if err != nil || !known || !before.Done || before.Error == "" || journal.OfAttempt(w.Run.Attempt, before.Key) {
		return before, known, err
	}
	intent, err := walletdb.ReadIntent(ctx, w.e.db, intentID(&before))
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return before, false, nil
	case err != nil:
		return before, false, err
	case intent.State == walletdb.IntentReverted || intent.State == walletdb.IntentFailed:
		return before, false, nil
	}
	before.Done = false
	return before, true, nil
}

// intentID returns the wallet's id of a journaled call. Ids of steps contain no "/".
func intentID(r *repute.Receipt) string { return fmt.Sprintf("%s/%s/%s", r.Run, r.Step, r.Key) }
