package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/store/column"
	"repute/store/walletdb"
)

// orphaned is the age at which an action counts as abandoned by the process that started it.
// It is counted on top of Options.Wait, for which a living request works on its action, so that Run seldom works on
// the same one. Both may do so without harm.
const orphaned = 30 * time.Second

// Numbers of actions that one pass reads, and that it works on at the same time.
// A pass reads the next openAtOnce after the last one, so that acts that wait long do not hide later ones.
// carriedAtOnce keeps acts that wait for their transactions, up to Options.Wait each, from holding up all others.
const (
	openAtOnce    = 64
	carriedAtOnce = 8
)

// Run completes abandoned actions until ctx ends. It visits open actions in round-robin order, so
// that those that cannot be completed do not delay others.
// The error is that of ctx, always: a database that cannot be read is logged, and read again in the next pass.
func (o *Operator) Run(ctx context.Context) error {
	var last walletdb.Act
	for {
		last = o.carryAll(ctx, last)
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// carryAll works on the open actions after one, and returns the last one it read, the zero action
// at the end of the list.
func (o *Operator) carryAll(ctx context.Context, behind walletdb.Act) (last walletdb.Act) {
	open, err := walletdb.OpenActs(ctx, o.db, orphaned+o.o.Wait, behind.Created, behind.ID, openAtOnce)
	if err != nil && ctx.Err() == nil {
		o.o.Log.Warn("acts could not be read", "error", err)
	}
	var carried sync.WaitGroup
	places := make(chan struct{}, carriedAtOnce)
	for i := range open {
		places <- struct{}{}
		carried.Go(func() {
			defer func() { <-places }()
			row, err := walletdb.ReadAct(ctx, o.db,
				open[i].ID) // read again: it may have changed while others were worked on
			if err == nil && row.Ended.IsZero() {
				_, err = o.carryOn(ctx, &row)
			}
			if err != nil && ctx.Err() == nil {
				o.o.Log.Warn("act: will look again", "act", open[i].ID, "error", err)
			}
		})
	}
	carried.Wait()
	if len(open) < openAtOnce {
		return walletdb.Act{}
	}
	return open[len(open)-1]
}

// carryOn sends the missing transactions of an action and waits at most Wait for their result. The action stays
// open if its result is not known then, which is no error. Several processes may do it for one action at the same
// time: an intent is signed once, and who ends the action second changes nothing.
//
// An error that the database, the endpoints or the deadline explain (repute.ErrUnavailable) leaves the act open. Any
// other error ends it as failed, with the intent that it is about, because a repetition would fail in the same way.
// The names of functions are stored with the end of the act, in one transaction.
func (o *Operator) carryOn(ctx context.Context, row *walletdb.Act) (Act, error) {
	waiting, cancel := context.WithTimeout(ctx, o.o.Wait)
	defer cancel()
	result, at, err := o.send(waiting, row)
	switch {
	case err == nil:
		var functions []walletdb.CallFunction
		if functions, err = functionsOf(row); err == nil {
			err = walletdb.EndAct(ctx, o.db, row.ID, journal.JSON(result), functions)
		}
	case !errors.Is(err, repute.ErrUnavailable) && waiting.Err() == nil:
		err = walletdb.FailAct(ctx, o.db, row.ID, at, err.Error())
	default:
		err = fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	}
	if errors.Is(err, repute.ErrUnavailable) {
		o.o.Log.Info("act goes on", "act", row.ID, "error", err)
	} else if err != nil {
		return Act{}, err
	}
	now, err := walletdb.ReadAct(ctx, o.db, row.ID)
	if err != nil {
		return Act{}, err
	}
	return o.view(ctx, &now)
}

// outcome is the result of an action apart from its transactions.
type outcome struct {
	AgentID string `json:"agentId,omitempty"`
}

// send sends the transactions of an action in order, each exactly once however often send is
// called. at is the intent that an error concerns, empty for other errors.
//
// It starts at the first step each time. Steps that are confirmed answer from their intents without a new
// transaction, which is how it finds the place where another process or a crash stopped.
func (o *Operator) send(ctx context.Context, row *walletdb.Act) (out outcome, at string, err error) {
	var steps []step
	var d recorded
	if err := errors.Join(json.Unmarshal(row.Transactions, &steps), json.Unmarshal(row.Decision, &d)); err != nil {
		return out, "", fmt.Errorf("stored act %s: %w", row.ID, err)
	}
	var sent []transaction.Sent
	for i := range steps {
		at := intentID(row.ID, i)
		err := o.stillAllowed(ctx, row, &d, steps, i)
		var s transaction.Sent
		if err == nil {
			s, err = o.sendStep(ctx, at, d.Origin, &steps[i], sent)
		}
		if err != nil {
			return out, at, fmt.Errorf("%s: %w", steps[i].Purpose, err)
		}
		if !s.OK {
			return out, at, fmt.Errorf("%s: transaction %s was reverted", steps[i].Purpose, s.Hash)
		}
		if steps[i].Owner {
			if err := o.wasSet(ctx, at, &steps[i], s); err != nil {
				return out, "", err
			}
		}
		if sent = append(sent, s); i == 0 && row.Kind == kindIdentity {
			if out, err = o.registered(ctx, row, s); err != nil {
				return out, "", err
			}
		}
	}
	return out, "", nil
}

// wasSet compares the event of a confirmed transaction with the arguments that this or another
// process signed for the intent.
// The arguments are read from the intent, since another process may have signed data that differs from the one of
// this step.
func (o *Operator) wasSet(ctx context.Context, intent string, s *step, sent transaction.Sent) error {
	signed, err := walletdb.ReadIntent(ctx, o.db, intent)
	if err != nil {
		return fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	}
	if err := asAsked(s.Tx.Target, signed.Data, sent); err != nil {
		o.o.Log.Error("act: the treasury was set otherwise than asked", "intent", intent, "error", err)
		return fmt.Errorf("%s: %w", s.Purpose, err)
	}
	return nil
}

// stillAllowed decides again about a transaction that is not signed yet when the decision about its
// action is too old: it may be refused now. A change of a policy that has changed meanwhile is
// refused too. An action without any signed transaction expires. A signed transaction continues,
// because it may be in the mempool.
//
// A policy change is looked at again also while it is fresh, since its data has the values of all fields: another
// change between the request and the signature would be undone by it. Only a first step expires, because after it
// something has happened that the rest belongs to.
func (o *Operator) stillAllowed(ctx context.Context, row *walletdb.Act, d *recorded, steps []step, i int) error {
	fresh := row.Age <= o.o.Fresh
	if fresh && row.Kind != kindPolicy {
		return nil
	}
	if _, err := walletdb.ReadIntent(ctx, o.db, intentID(row.ID, i)); !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	if i == 0 && row.Age > o.o.Expire {
		return repute.Conflict("nothing could be sent for %s since it was asked for: ask again",
			row.Age.Round(time.Second))
	}
	if changed, err := o.readAgain(ctx, row, steps, i); err != nil || fresh && !changed {
		return err
	}
	j, p := &job{kind: row.Kind, chain: row.ChainID, agent: row.Agent}, o.o.Policy()
	agent, err := o.facts(ctx, p, j)
	if err != nil {
		return err
	}
	// The earlier reasons stay in d: a step that was denied once is never allowed by a later look, and the reasons of
	// all looks are shown.
	if err := o.judgeStep(ctx, p, j, &steps[i], agent, d); err != nil {
		return err
	}
	if n := len(d.Inputs); n > len(steps) { // only the newest decision of each transaction is kept
		d.Inputs[i], d.Inputs = d.Inputs[n-1], d.Inputs[:n-1]
	}
	if d.Approved != "" && d.approval(steps) != d.ApprovedFor { // something else was approved
		d.Approved, d.ApprovedFor = "", ""
	}
	// The new decision is stored before it takes effect, so that what is signed below is always what the database
	// shows.
	if err := walletdb.RejudgeAct(ctx, o.db, row.ID, journal.JSON(d), journal.JSON(steps)); err != nil {
		return err
	}
	if denied := d.denied(); denied != nil {
		return denied
	}
	return nil
}

// readAgain recomputes a change of a policy from the current policy, and reports whether the policy
// differs from the one at the request. Afterwards it cannot change before the signature, because
// only one change may be open at a time.
// A change that has another number of steps now cannot be matched by index, and stays as it was asked for.
func (o *Operator) readAgain(ctx context.Context, row *walletdb.Act, steps []step, i int) (changed bool, err error) {
	if row.Kind != kindPolicy {
		return false, nil
	}
	var c PolicyChange
	if err := json.Unmarshal(row.Request, &c); err != nil {
		return false, fmt.Errorf("stored act %s: %w", row.ID, err)
	}
	now, err := o.changes(ctx, &c)
	if err != nil || len(now) != len(steps) || bytes.Equal(now[i].Tx.Data, steps[i].Tx.Data) {
		return false, err
	}
	steps[i] = now[i]
	return true, nil
}

// sendStep sends the transaction of one step, or resumes sending it. The data of a consent or of the treasury's
// owner may differ between two processes that make it at the same time: the one that was stored first is what both
// send.
//
// Owner and consent data are the only ones that two processes may make differently. For every other step a conflict
// is an error, since the same intent id MUST mean the same transaction.
func (o *Operator) sendStep(ctx context.Context, id string, origin transaction.Origin, s *step,
	before []transaction.Sent) (transaction.Sent, error) {
	intent := transaction.Intent{ID: id, Origin: origin, Tx: s.Tx}
	if s.Simulation != nil {
		intent.MaxGasWei = s.Simulation.FeeWei
	}
	send := o.wallet.Send
	if s.Owner {
		send = o.wallet.SendOwner
	}
	if s.Consent != nil {
		if err := o.consented(ctx, &intent, s.Consent, before); err != nil {
			return transaction.Sent{}, err
		}
	}
	sent, err := send(ctx, intent)
	if errors.Is(err, repute.ErrConflict) { // perhaps another process signed a consent or change of its own meanwhile
		if stored, unknown := walletdb.ReadIntent(ctx, o.db, id); unknown == nil &&
			string(stored.Data) != string(intent.Data) && (s.Owner || s.Consent != nil) {
			intent.Data = stored.Data
			return send(ctx, intent)
		}
	}
	return sent, err
}

// intentID returns the id of the intent of a step.
// It is derived and not drawn, so that every process that works on the act means the same intent. It is stored, and
// MUST NOT change.
func intentID(act string, step int) string { return fmt.Sprintf("%s/%d", act, step+1) }

// Act returns an operator action by its id. repute.ErrNotFound if there is none.
func (o *Operator) Act(ctx context.Context, id string) (Act, error) {
	row, err := walletdb.ReadAct(ctx, o.db, id)
	if err != nil {
		return Act{}, err
	}
	return o.view(ctx, &row)
}

// Acts lists acts, the newest first, before a time and id; a zero time for the first.
// The pair of time and id is the cursor: acts of one time are ordered by their ids.
func (o *Operator) Acts(ctx context.Context, before time.Time, beforeID string, most int) ([]Act, error) {
	rows, err := walletdb.Acts(ctx, o.db, before, beforeID, most)
	if err != nil {
		return nil, err
	}
	out := make([]Act, 0, len(rows))
	for i := range rows {
		a, err := o.view(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// view returns an action with the results of its transactions. An act is not stored again when its transactions
// move on: their intents have the state, and are read with it.
func (o *Operator) view(ctx context.Context, row *walletdb.Act) (Act, error) {
	act, err := o.shown(row)
	if err != nil || row.Refused != "" {
		return act, err
	}
	for i := range act.Transactions {
		in, err := walletdb.ReadIntent(ctx, o.db, intentID(row.ID, i))
		if errors.Is(err, repute.ErrNotFound) {
			break
		}
		if err != nil {
			return act, err
		}
		act.Transactions[i].take(&in)
	}
	return act, nil
}

// shown decodes a stored action.
func (o *Operator) shown(row *walletdb.Act) (Act, error) {
	act := Act{ID: row.ID, Kind: row.Kind, Status: Pending, ChainID: row.ChainID, Domain: o.domain(row.Kind),
		AgentSlug: row.Agent, AskedBy: row.By,
		Transactions: []Transaction{}, Error: row.Error, Created: &row.Created}
	var steps []step
	var d recorded
	var result outcome
	for _, part := range []struct {
		text json.RawMessage
		into any
	}{{row.Transactions, &steps}, {row.Decision, &d}, {column.OrNull(row.Result), &result}} {
		if err := json.Unmarshal(part.text, part.into); err != nil {
			return act, fmt.Errorf("stored act %s: %w", row.ID, err)
		}
	}
	act.Policy, act.AgentID = d.Decision, result.AgentID
	for _, s := range steps {
		act.Transactions = append(act.Transactions,
			Transaction{Purpose: s.Purpose, To: s.Tx.Target.Hex(), Calls: s.Calls,
				Simulation: s.Simulation})
	}
	switch {
	case row.Refused != "":
		act.Status, act.Error = Refused, row.Refused
	case row.Error != "":
		act.Status = Failed
	case !row.Ended.IsZero():
		act.Status = Confirmed
	}
	if !row.Ended.IsZero() {
		act.Ended = &row.Ended
	}
	return act, nil
}

// domain returns on which of the two chains a kind of action is sent.
func (o *Operator) domain(kind string) string {
	switch kind {
	case kindPolicy, kindCall, kindTransfer:
		return "execution"
	}
	return "trust"
}

// take adds the result of a transaction.
// The last attempt is shown until one is mined, because attempts replace each other with higher fees and only one of
// them can be mined.
func (t *Transaction) take(in *walletdb.Intent) {
	t.From, t.To, t.Status = in.From.Hex(), in.To.Hex(), string(in.State)
	t.Hash = in.Attempts[len(in.Attempts)-1].Hash.Hex()
	if in.Mined.Block == 0 {
		return
	}
	t.Hash, t.Block, t.BlockHash, t.GasUsed = in.Mined.Hash.Hex(), in.Mined.Block, in.Mined.BlockHash.Hex(),
		in.Mined.GasUsed
	if in.Mined.Fee != nil {
		t.FeeWei = in.Mined.Fee.String()
	}
}
