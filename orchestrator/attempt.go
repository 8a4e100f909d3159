package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// attemptKeys are those that a transaction may have been journaled by.
func (w *work) attemptKeys(key string) (out []string) {
	for attempt := range max(1, w.Run.Attempt) {
		out = append(out, journal.AttemptKey(attempt+1, key))
	}
	return out
}

// earlier finds a transaction that the run has journaled, in this attempt or before. One
// that ended badly in an earlier attempt, and that the wallet never signed or says cannot
// have an effect any more, counts as unknown: this attempt may send it. What the wallet may
// still bring to the chain is followed to its end.
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

// intentID names what is sent for a journaled call. Steps have no "/" in their ids.
func intentID(r *repute.Receipt) string { return fmt.Sprintf("%s/%s/%s", r.Run, r.Step, r.Key) }
