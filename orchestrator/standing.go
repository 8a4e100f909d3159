package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store/rundb"
)

// standing decides again whether the agent of a run, and those that it works for, may act at all.
// Since the beginning of Execute an identity may have been sold, an agent removed or a policy
// replaced: nothing is sent after that. It is called before a transaction is journaled and again
// before it is signed.
func (w *work) standing(ctx context.Context) error {
	for x := w; x != nil; x = x.parent {
		if err := w.standingOf(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// standingOf is standing for the agent of x alone.
func (w *work) standingOf(ctx context.Context, x *work) error {
	now, err := rundb.Module(ctx, w.e.db, x.Run.Agent)
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return transaction.Refuse("removed", "agent %s is not registered any more", x.Run.Agent)
	case err != nil:
		return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	case now.URL != x.module.URL || !sameAgent(now.Agent, x.module.Agent):
		return transaction.Refuse("replaced",
			"agent %s is registered at another address or with another identity than when the run began", x.Run.Agent)
	}
	v, err := x.judge(ctx, now, x.policyTask(w.e.o.Policy()))
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	if v.Decision.Effect == policy.Allow || v.Same(&x.gateDecision) {
		return nil // an approved agent that has not changed
	}
	subject := x.gateDecision.Subject(&v) + x.programSuffix(v.Decision.Effect)
	stored := v.Stored(repute.PhaseExecute, repute.DecisionStanding, subject)
	if v.Decision.Effect == policy.Deny {
		return errors.Join(&transaction.DeniedError{Reasons: v.Decision.Reasons},
			rundb.AddDecision(ctx, w.e.db, w.lease, w.Run.ID, stored))
	}
	if x == w {
		return w.approved(ctx, stored, v.Decision, nil)
	}
	given, err := rundb.Approvals(ctx, w.e.db, x.Run.ID, x.Run.Attempt)
	if err != nil || given[subject].Approved {
		return err
	}
	stored.Subject = x.Run.Agent + ": " + subject
	return w.approved(ctx, stored, v.Decision, nil)
}

// sameAgent reports whether two references name the same agent or both name none.
func sameAgent(a, b *repute.AgentID) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// refused notes that a transaction was refused before anything of it was journaled: a
// receipt, an event and a decision. err is why; other errors than refusals leave nothing.
func (c *Context) refused(ctx context.Context, key string, tx *transaction.Tx, err error) error {
	w, step := c.w, c.step
	var denied *transaction.DeniedError
	var over *rundb.BudgetError
	reasons := []policy.Reason{}
	switch {
	case errors.As(err, &denied):
		reasons = denied.Reasons
	case errors.As(err, &over):
		reasons = append(reasons, policy.Reason{ID: "limit." + over.Limit, Effect: policy.Deny, Text: over.Error(),
			Have: over.Used, Need: over.Most})
	default:
		return err
	}
	p := w.e.o.Policy()
	listed, failed := w.listed(ctx, tx)
	if failed != nil {
		return errors.Join(err, failed)
	}
	in := w.callInput(p, tx, listed)
	subject := step + "/" + journal.AttemptKey(w.Run.Attempt, key) + " " + tx.Digest()
	r := repute.Receipt{Run: w.Run.ID, Step: step,
		Key:  journal.AttemptKey(w.Run.Attempt, "refused/"+journal.Digest([]byte(subject), []byte(err.Error()))[:16]),
		Kind: repute.CallRefused,
		Ref:  tx.Target.Hex(), Summary: tx.Purpose, Chain: tx.ChainID, Domain: w.e.domain(tx.ChainID),
		Request: journal.Bounded(journal.JSON(tx)), Error: journal.Shorten(err.Error())}
	d, failed := w.stored(ctx, p, rundb.Decision{Phase: c.phase, Kind: repute.DecisionRefused, Subject: subject,
		Input: journal.JSON(in)}, policy.Decision{Effect: policy.Deny, Reasons: reasons})
	if failed != nil {
		return errors.Join(err, failed)
	}
	id, failed := rundb.RefuseCall(ctx, w.e.db, w.lease, r, d)
	if failed != nil {
		return errors.Join(err, w.lost(failed))
	}
	c.leaves(id)
	return err
}
