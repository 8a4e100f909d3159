// Package pending follows transactions that runs journaled to their end: in which form they are journaled, how they
// ended, and what happens to those whose run ended first.
//
// A transaction is journaled before it is handed to the wallet, as Charged: with the part of the gas budget that was
// taken for it and with what it moves out of the treasury. IntentID names it to the wallet, which sends one
// transaction per name. So the journal and the wallet can be compared at any time: Earlier finds the transaction that
// an interrupted step has sent already, LeftOf counts those that the dry run declared, and Moved adds up what the
// whole task moves.
//
// A run can end, by its time or a cancellation, while its transaction is in the mempool. Every engine calls Settle
// now and then, which asks the wallet for the end of such transactions and completes their receipts and the budget of
// their task. Open reports which errors leave the end unknown; everything else is final.
//
// Settling takes no lease: it writes only receipts of runs that ended, each once (rundb.SettleCall).
package pending

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// Charged is a transaction in its journaled form, with its part of the gas budget and the values it
// moves.
type Charged struct {
	transaction.Tx
	ChargedWei string                `json:"chargedWei"`
	Leaves     []transaction.Outflow `json:"leaves,omitempty"` // the treasury, as its simulation showed
}

// IntentID returns the wallet's id of a journaled call. Ids of steps contain no "/".
func IntentID(r *repute.Receipt) string { return fmt.Sprintf("%s/%s/%s", r.Run, r.Step, r.Key) }

// Open reports whether an error of Chain.Send leaves the result of the transaction unknown: no
// endpoint answered, the database failed, or the call was canceled.
func Open(ctx context.Context, err error) bool {
	return err != nil && (errors.Is(err, repute.ErrUnavailable) || errors.Is(err, store.ErrDatabase) ||
		ctx.Err() != nil)
}

// Outcome returns the journaled outcome of a transaction, and the error that it means.
func Outcome(sent transaction.Sent, chargedWei string, err error) (rundb.CallOutcome, error) {
	o := rundb.CallOutcome{Result: journal.JSON(sent), GasWei: transaction.Difference(sent.FeeWei, chargedWei)}
	if err == nil {
		o.Ref = sent.Hash.Hex()
		if !sent.OK {
			err = fmt.Errorf("transaction %s was reverted", sent.Hash)
		}
	}
	if err != nil {
		o.Error = err.Error()
	}
	return o, err
}

// Settle completes the receipts of transactions whose run ended before they were final. A receipt
// that cannot be completed, for example without endpoints, does not delay others.
func Settle(ctx context.Context, db *store.DB, chain transaction.Chain) error {
	if chain == nil {
		return nil
	}
	open, err := rundb.OpenCalls(ctx, db, 100)
	failed := []error{err}
	for i := range open {
		failed = append(failed, settle(ctx, db, chain, &open[i]))
	}
	return errors.Join(failed...)
}

// settle brings a journaled transaction to its end after a crash: the wallet finds it by its
// id, and its receipt is stored.
func settle(ctx context.Context, db *store.DB, chain transaction.Chain, c *rundb.OpenCall) error {
	var before Charged
	if err := json.Unmarshal(c.Request, &before); err != nil {
		return fmt.Errorf("journaled transaction %d: %w", c.ID, err)
	}
	sent, err := chain.Send(ctx,
		transaction.Intent{ID: IntentID(&c.Receipt),
			Origin: transaction.Origin{Agent: c.Agent, Run: c.Run, Task: c.Task},
			Tx:     before.Tx, MaxGasWei: before.ChargedWei})
	if Open(ctx, err) {
		return err
	}
	o, _ := Outcome(sent, before.ChargedWei, err)
	return rundb.SettleCall(ctx, db, *c, o)
}

// attemptKeys returns the journal keys that a transaction may have, one per attempt.
func attemptKeys(attempts int, key string) (out []string) {
	for attempt := range max(1, attempts) {
		out = append(out, journal.AttemptKey(attempt+1, key))
	}
	return out
}

// Earlier returns a transaction that the run journaled in this attempt or before. A failed
// transaction of an earlier attempt counts as unknown, so that this attempt may send it, if the
// wallet never signed it or reports that it can no longer have an effect. A transaction that may
// still be mined is followed to its end.
func Earlier(ctx context.Context, db *store.DB, attempt int, r repute.Receipt, key string) (before repute.Receipt,
	known bool, err error) {
	before, known, err = rundb.LastCall(ctx, db, r.Run, r.Step, attemptKeys(attempt, key))
	if err != nil || !known || !before.Done || before.Error == "" || journal.OfAttempt(attempt, before.Key) {
		return before, known, err
	}
	intent, err := walletdb.ReadIntent(ctx, db, IntentID(&before))
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

// Moved adds the moves of all journaled transactions of a task, except the call but of run.
func Moved(ctx context.Context, db *store.DB, p *policy.Policy, task, run, but string, sum *transaction.Moves) error {
	list, err := rundb.TaskTransactions(ctx, db, task)
	for _, journaled := range list {
		if journaled.Run == run && journaled.Call == but {
			continue
		}
		var before Charged
		if err := json.Unmarshal(journaled.Request, &before); err != nil {
			return fmt.Errorf("journaled transaction: %w", err)
		}
		if err := sum.Add(p, &before.Tx, before.Leaves); err != nil {
			return fmt.Errorf("journaled transaction: %w", err)
		}
	}
	return err
}

// LeftOf finds the call of a dry run that declares a transaction, and refuses one that the run sent as often as the
// dry run declared. call is the journal key of the transaction.
func LeftOf(ctx context.Context, db *store.DB, dryRun []*transaction.Declared, task, run, call string,
	tx *transaction.Tx) (*transaction.Declared, error) {
	list, err := rundb.TaskTransactions(ctx, db, task)
	if err != nil {
		return nil, err
	}
	sent := []*transaction.Tx{tx}
	for _, journaled := range list {
		var before Charged
		if journaled.Run == run && journaled.Call != call && json.Unmarshal(journaled.Request, &before) == nil &&
			slices.ContainsFunc(dryRun, func(d *transaction.Declared) bool { return d.Fits(&before.Tx) }) {
			sent = append(sent, &before.Tx)
		}
	}
	if found := transaction.Matching(dryRun, sent); found != nil {
		return dryRun[found[0]], nil
	}
	shown := 0
	for _, d := range dryRun {
		if d.Fits(tx) {
			shown++
		}
	}
	return nil, transaction.Refuse("unsimulated",
		"the dry run showed this transaction %d times, and it was sent as often", shown)
}
