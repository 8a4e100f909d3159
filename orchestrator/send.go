package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"repute"
	"repute/contracts"
	"repute/orchestrator/approval"
	"repute/orchestrator/journal"
	"repute/orchestrator/pending"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/rundb"
	"repute/store/scoredb"
	"repute/store/walletdb"
)

// ApprovalError is returned when a person must decide before the run continues.
type ApprovalError struct {
	Run     string // that waits
	Subject string // name of the question, which the answer must repeat
	Reasons []policy.Reason
	Shown   *approval.Shown // the transaction that needs approval, if it is one
}

// Error names the first reason.
func (e *ApprovalError) Error() string {
	return "waits for approval: " + transaction.Texts(transaction.Against(e.Reasons))
}

// Simulate simulates a transaction. It counts as a tool call. The answer is journaled: a repeated step sees the
// block of the first time, and Send simulates anew.
func (c *Context) Simulate(ctx context.Context, tx transaction.Tx) (out transaction.Simulation, err error) {
	if err := c.w.records(tx.ChainID).MayTouch(ctx, &tx); err != nil {
		return out, c.w.lost(err)
	}
	r := repute.Receipt{Kind: repute.CallChain, Ref: tx.Target.Hex(), Summary: "simulation: " + tx.Purpose,
		Chain: tx.ChainID, Domain: c.w.e.domain(tx.ChainID), Request: journal.JSON(tx)}
	body, err := c.call(ctx, r, func(ctx context.Context, _ string) (json.RawMessage, error) {
		s, err := c.w.simulate(ctx, tx)
		return journal.JSON(s), err
	})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(body, &out)
}

// simulate executes a transaction at the newest block without sending it.
func (w *work) simulate(ctx context.Context, tx transaction.Tx) (transaction.Simulation, error) {
	if err := tx.Check(); err != nil {
		return transaction.Simulation{}, err
	}
	if w.e.o.Chain == nil {
		return transaction.Simulation{}, fmt.Errorf("no chain is configured: %w", repute.ErrUnavailable)
	}
	if err := safety.PaysPayee(ctx, w.e.db, w.e.o.Chain, &tx); err != nil {
		return transaction.Simulation{}, err
	}
	s, err := w.e.o.Chain.Simulate(ctx, w.origin(), tx)
	if err != nil {
		return s, err
	}
	return s, w.records(tx.ChainID).MayLog(ctx, s.Logs)
}

// origin returns the agent, run and task of a transaction.
func (w *work) origin() transaction.Origin {
	return transaction.Origin{Agent: w.Run.Agent, Run: w.Run.ID, Task: w.Run.Task}
}

// Send sends a transaction, once however often the step runs, and waits for its
// confirmation. It is simulated first. *DeniedError: a rule refuses it; *ApprovalError: a
// person must decide, and Execute ends here for now; repute.ErrLimited: the budget is
// used up.
func (c *Context) Send(ctx context.Context, tx transaction.Tx) (transaction.Sent, error) {
	if c.w.databaseFailed() != nil { // nothing that happens after is stored
		return transaction.Sent{}, ErrAway
	}
	sent, err := c.send(ctx, tx)
	return sent, c.w.lost(err)
}

// send decides about a transaction, journals it and sends it. It is sent once, however often the
// phase is repeated.
func (c *Context) send(ctx context.Context, tx transaction.Tx) (transaction.Sent, error) {
	if c.phase != repute.PhaseExecute {
		return transaction.Sent{},
			c.refused(ctx, tx.Key, &tx, transaction.Refuse("phase", "transactions are sent in Execute alone, not in %s",
				c.phase))
	}
	key, err := c.next(repute.CallTransaction, tx.Key)
	if err != nil {
		return transaction.Sent{}, err
	}
	if err := tx.Check(); err != nil {
		return transaction.Sent{}, err
	}
	if err := c.w.records(tx.ChainID).MayTouch(ctx, &tx); err != nil {
		return transaction.Sent{}, c.refused(ctx, key, &tx, err)
	}
	return c.w.transact(ctx, c, key, tx)
}

// transact is Send after the checks that need no stored data. A transaction that was begun before
// is looked up, whatever simulation and policy would decide now.
func (w *work) transact(ctx context.Context, c *Context, key string, tx transaction.Tx) (transaction.Sent, error) {
	if err := w.wasSimulated(&tx); err != nil {
		return transaction.Sent{}, c.refused(ctx, key, &tx, err)
	}
	r := repute.Receipt{Run: w.Run.ID, Step: c.step, Key: journal.AttemptKey(w.Run.Attempt, key),
		Kind: repute.CallTransaction,
		Ref:  tx.Target.Hex(), Summary: tx.Purpose,
		Chain: tx.ChainID, Domain: w.e.domain(tx.ChainID)}
	if before, known, err := pending.Earlier(ctx, w.e.db, w.Run.Attempt, r, key); err != nil || known {
		c.leaves(before.ID)
		return w.resume(ctx, before, tx, err)
	}
	journaled, known, fee, err := w.journal(ctx, r, tx)
	if err != nil {
		return transaction.Sent{}, c.refused(ctx, key, &tx, w.lost(err))
	}
	c.leaves(journaled.ID)
	if known {
		return w.resume(ctx, journaled, tx, nil)
	}
	return w.broadcast(ctx, journaled.ID, w.intent(&journaled, tx, fee), fee)
}

// journal decides about a transaction and journals it with its charge. Transactions of a task are decided one at a
// time, because each decision depends on all that were sent. known tells that the journal has it already, from
// before a crash.
func (w *work) journal(ctx context.Context, r repute.Receipt, tx transaction.Tx) (journaled repute.Receipt, known bool,
	fee string, err error) {
	root := w.root()
	root.moving.Lock()
	defer root.moving.Unlock()
	shown, err := w.leftOfDryRun(ctx, r.Step+"/"+r.Key, &tx)
	if err != nil {
		return journaled, false, "", err
	}
	simulated, decision, err := w.judged(ctx, r.Step, r.Key, &tx, shown)
	if err != nil {
		return journaled, false, "", err
	}
	r.Request = journal.JSON(pending.Charged{Tx: tx, ChargedWei: simulated.FeeWei,
		Leaves: transaction.Outflows(simulated.Treasury, simulated.Logs)})
	charge := rundb.Charge{Writes: 1, GasWei: simulated.FeeWei, MostOfRun: int(w.info.Manifest.Budget().OnchainWrites)}
	journaled, known, err = rundb.BeginCall(ctx, w.e.db, w.lease, r, charge, decision)
	return journaled, known, simulated.FeeWei, err
}

// judged simulates a transaction and asks the policy and, if required, a person. If the dry run
// declared it with placeholders, in shown, it is decided by the worst values that they allow.
func (w *work) judged(ctx context.Context, step, key string, tx *transaction.Tx,
	shown *transaction.Declared) (s transaction.Simulation, d rundb.Decision,
	err error) {
	if err = w.standing(ctx); err != nil {
		return s, d, err
	}
	if s, err = w.simulate(ctx, *tx); err != nil {
		return s, d, err
	}
	cases, err := shown.Cases(tx)
	if err != nil {
		return s, d, err
	}
	call := step + "/" + key
	if d, err = w.allows(ctx, call, tx, cases, shown, &s); err != nil {
		return s, d, err
	}
	worst, err := transaction.WorstOf(w.e.o.Policy(), cases, shown, transaction.Outflows(s.Treasury, s.Logs))
	if err != nil {
		return s, d, err
	}
	if err = w.trusted(ctx, call, tx, worst, shown, &s); err != nil {
		return s, d, err
	}
	if !s.OK {
		return s, d, transaction.Refuse("simulation", "the transaction would fail: %s", s.Reason)
	}
	return s, d, nil
}

// resume continues a journaled transaction; err is the reason why it could not be read.
func (w *work) resume(ctx context.Context, journaled repute.Receipt, tx transaction.Tx,
	err error) (out transaction.Sent, _ error) {
	if err != nil {
		return out, err
	}
	var before pending.Charged
	if json.Unmarshal(journaled.Request, &before) != nil || !before.Same(&tx) {
		return out, transaction.Refuse("another", "the step sent another transaction as %q before it was interrupted",
			journaled.Key)
	}
	if journaled.Done {
		return out, errors.Join(json.Unmarshal(journaled.Result, &out), journal.Replayed(journaled.Error))
	}
	if journaled.Error != "" { // its end gave the charge back
		before.ChargedWei = ""
	}
	intent := w.intent(&journaled, tx, before.ChargedWei)
	var denied *transaction.DeniedError
	if err := w.stillAllowed(ctx, &journaled, &tx, intent.ID); errors.As(err,
		&denied) { // nothing is signed: it ends here
		o := rundb.CallOutcome{Error: err.Error(), GasWei: transaction.Difference("", before.ChargedWei)}
		return out, errors.Join(err, w.lost(rundb.EndCall(ctx, w.e.db, w.lease, journaled.ID, o)))
	} else if err != nil {
		return out, err
	}
	return w.broadcast(ctx, journaled.ID, intent, before.ChargedWei)
}

// stillAllowed decides again about a journaled transaction without signature, because it may be
// refused now. A signed transaction continues, because it may be in the mempool.
func (w *work) stillAllowed(ctx context.Context, journaled *repute.Receipt, tx *transaction.Tx, intent string) error {
	if _, err := walletdb.ReadIntent(ctx, w.e.db, intent); !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	shown, err := w.leftOfDryRun(ctx, journaled.Step+"/"+journaled.Key, tx)
	if err != nil {
		return err
	}
	_, decision, err := w.judged(ctx, journaled.Step, journaled.Key, tx, shown)
	if err != nil {
		return err
	}
	return w.lost(rundb.AddDecision(ctx, w.e.db, w.lease, w.Run.ID, decision))
}

// intent returns the wallet's intent for a journaled call. Its id is made of the run and the call's key, which are
// the same whenever the step is repeated. Still is asked by the wallet right before it signs.
func (w *work) intent(r *repute.Receipt, tx transaction.Tx, mostWei string) transaction.Intent {
	still := func(ctx context.Context) error {
		if err := w.standing(ctx); err != nil {
			return err
		}
		return safety.PaysPayee(ctx, w.e.db, w.e.o.Chain, &tx)
	}
	return transaction.Intent{ID: pending.IntentID(r), Origin: w.origin(), Tx: tx, MaxGasWei: mostWei, Still: still}
}

// broadcast sends an intent and journals the result. An unknown result stays open, and the next
// execution of the step resolves it.
func (w *work) broadcast(ctx context.Context, call int64, intent transaction.Intent,
	chargedWei string) (transaction.Sent, error) {
	ctx, end := w.e.trace.Start(ctx, "transaction", attribute.String("ref", intent.Target.Hex()),
		attribute.String("key", intent.ID))
	sent, err := w.e.o.Chain.Send(ctx, intent)
	end(err)
	if pending.Open(ctx, err) {
		return sent, err
	}
	o, err := pending.Outcome(sent, chargedWei, err)
	if stored := rundb.EndCall(ctx, w.e.db, w.lease, call, o); stored != nil {
		return sent, w.lost(stored)
	}
	return sent, err
}

// wasSimulated refuses a transaction that the dry run did not declare, and transactions of a remote
// agent without dry run unless the policy allows them.
func (w *work) wasSimulated(tx *transaction.Tx) error {
	switch {
	case len(tx.Placeholders) > 0:
		return transaction.Refuse("placeholder",
			"a transaction that is sent has no placeholders: the dry run declares them")
	case !w.dryRan && w.module.URL != "" && !w.e.o.Policy().SendWithoutDryRun():
		return transaction.Refuse("no_dry_run",
			"the agent has no dry run, and the policy does not let such agents send (sendWithoutDryRun)")
	case w.dryRan && !slices.ContainsFunc(w.intended, func(d *transaction.Declared) bool { return d.Fits(tx) }):
		return transaction.Refuse("unsimulated",
			"the dry run showed no such transaction (target %s, selector %s, value %s, data sha256 %.16s): each byte must be as shown, or of a declared placeholder",
			tx.Target, tx.Selector(), cmp.Or(tx.Value, "0"), journal.Digest(tx.Data))
	}
	return nil
}

// leftOfDryRun finds the declared call of a transaction, and refuses one that was sent as often as
// the dry run declared. call is the journal key of the transaction. The result is nil without a dry
// run.
func (w *work) leftOfDryRun(ctx context.Context, call string, tx *transaction.Tx) (*transaction.Declared, error) {
	if !w.dryRan {
		return nil, nil
	}
	return pending.LeftOf(ctx, w.e.db, w.intended, w.Run.Task, w.Run.ID, call, tx)
}

// callInput returns the input of the rules about a transaction. listed is the function that an
// allow-list names for it, nil for none.
func (w *work) callInput(p *policy.Policy, tx *transaction.Tx, listed *contracts.Function) policy.Input {
	in := w.policyInput(p)
	in.Phase, in.Call = "call", tx.Call()
	if c := w.e.calls.Decode(tx.Target, tx.Data, listed)[0]; c.Decoded != nil {
		in.Call.Function, in.Call.Args = c.Function, c.Decoded.Values()
	}
	return in
}

// allows asks the policy and, if required, a person about a transaction. cases are the transaction
// or, with placeholders, the worst values that they allow: the strictest decision counts.
func (w *work) allows(ctx context.Context, call string, tx *transaction.Tx, cases []transaction.Tx,
	declared *transaction.Declared,
	s *transaction.Simulation) (rundb.Decision, error) {
	p := w.e.o.Policy()
	listed, err := w.listed(ctx, tx)
	if err != nil {
		return rundb.Decision{}, err
	}
	in := w.callInput(p, tx, listed)
	d := p.Decide(ctx, &in)
	for i := range cases[1:] {
		worse := w.callInput(p, &cases[i+1], listed)
		d.Merge(p.Decide(ctx, &worse))
	}
	// the policy may be another than when the run began
	if err := rundb.BoundRun(ctx, w.e.db, w.lease, standard.LimitsOf(in.Task.Budget)); err != nil {
		return rundb.Decision{}, w.lost(err)
	}
	shown, err := w.show(ctx, tx, declared, s, transaction.Against(d.Reasons))
	if err != nil {
		return rundb.Decision{}, err
	}
	stored, err := w.stored(ctx, p, rundb.Decision{Phase: repute.PhaseExecute, Kind: repute.DecisionCall,
		Subject: call + " " + shown.Hash(), Input: journal.JSON(asked{Input: &in, Shown: shown})}, d)
	if err != nil {
		return rundb.Decision{}, err
	}
	switch d.Effect {
	case policy.Allow:
		return stored, nil
	case policy.Deny:
		stored.Subject = call + " " + tx.Digest() // as in refused, so that both are one decision
		return stored, errors.Join(&transaction.DeniedError{Reasons: d.Reasons},
			rundb.AddDecision(ctx, w.e.db, w.lease, w.Run.ID, stored))
	}
	return stored, w.approved(ctx, stored, d, shown)
}

// stored completes a decision of a policy for the table of decisions, and keeps the text of the policy, by which the
// decision can be made again.
func (w *work) stored(ctx context.Context, p *policy.Policy, out rundb.Decision,
	d policy.Decision) (rundb.Decision, error) {
	out.Effect, out.Reasons, out.Policy = string(d.Effect), journal.JSON(d.Reasons), p.Hash()
	_, err := scoredb.KeepInput(ctx, w.e.db, p.Text())
	return out, w.lost(err)
}

// enforce stores a decision, and returns what follows from it: nil, a *transaction.DeniedError, or the *ApprovalError
// that the run waits with.
func (w *work) enforce(ctx context.Context, stored rundb.Decision, d policy.Decision, shown *approval.Shown) error {
	if d.Effect == policy.RequireApproval {
		return w.approved(ctx, stored, d, shown)
	}
	err := w.lost(rundb.AddDecision(ctx, w.e.db, w.lease, w.Run.ID, stored))
	if d.Effect == policy.Deny {
		return errors.Join(&transaction.DeniedError{Reasons: d.Reasons}, err)
	}
	return err
}

// asked is the input of a decision, with the description that a person sees.
type asked struct {
	*policy.Input       `json:",omitempty"`
	*trustgate.Decision `json:",omitempty"`
	Shown               *approval.Shown `json:"shown"`
}

// approved returns nil once a person has approved; until then the run waits. shown describes the
// transaction for the person, nil for other questions.
func (w *work) approved(ctx context.Context, stored rundb.Decision, d policy.Decision, shown *approval.Shown) error {
	waits, err := w.answered(ctx, stored.Subject, d, shown)
	if err != nil || waits == nil {
		return err
	}
	if err := rundb.AddDecision(ctx, w.e.db, w.lease, w.Run.ID, stored); err != nil {
		return w.lost(err)
	}
	w.wait(waits)
	return waits
}

// answered returns nil once a person approved the subject, a *DeniedError where a person refused it, else
// the *ApprovalError that the run waits with.
func (w *work) answered(ctx context.Context, subject string, d policy.Decision,
	shown *approval.Shown) (*ApprovalError, error) {
	given, err := rundb.Approvals(ctx, w.e.db, w.Run.ID, w.Run.Attempt)
	if err != nil {
		return nil, err
	}
	a, known := given[subject]
	switch {
	case known && a.Approved:
		return nil, nil
	case known:
		return nil, &transaction.DeniedError{Reasons: []policy.Reason{{ID: "approval", Effect: policy.Deny,
			Text: strings.TrimSuffix(a.By+" refused: "+a.Reason, ": ")}}}
	}
	return &ApprovalError{w.Run.ID, subject, d.Reasons, shown}, nil
}
