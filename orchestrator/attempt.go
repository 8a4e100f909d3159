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
