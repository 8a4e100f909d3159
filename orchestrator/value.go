package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"repute/policy"
	"repute/store"
)

// trusted asks the trust gate again where a task moves more native coin than it declared
// to be at risk: the agent, and those that it works for, must be trusted with all that
// moves. Amounts of tokens have no common measure; the policy's rules bound them.
func (w *work) trusted(ctx context.Context, subject string, tx *Tx, more *big.Int) error {
	declared, err := weiOf(w.terms.ValueAtRisk)
	if err != nil {
		return err
	}
	if value, err := weiOf(tx.Value); err != nil || value.Sign() == 0 {
		return err
	}
	total, err := w.moved(ctx)
	if err != nil {
		return err
	}
	if total.Add(total, more).Cmp(declared) <= 0 {
		return nil
	}
	for x := w; x != nil; x = x.parent {
		if err := w.trustedWith(ctx, x, "value of "+x.Run.Agent+" "+subject, tx, total); err != nil {
			return err
		}
	}
	return nil
}

// moved is the value of all transactions that a task has journaled.
func (w *work) moved(ctx context.Context) (*big.Int, error) {
	sum := new(big.Int)
	list, err := w.e.db.TaskTransactions(ctx, w.Run.Task)
	for _, text := range list {
		var tx struct{ Value string }
		if err := json.Unmarshal(text, &tx); err != nil {
			return sum, fmt.Errorf("journaled transaction: %w", err)
		}
		value, err := weiOf(tx.Value)
		if err != nil {
			return sum, fmt.Errorf("journaled transaction: %w", err)
		}
		sum.Add(sum, value)
	}
	return sum, err
}

// trustedWith judges the agent of x for a value. What a person approved of at its own trust
// check is not asked again.
func (w *work) trustedWith(ctx context.Context, x *work, subject string, tx *Tx, total *big.Int) error {
	task := x.policyTask(x.e.o.Policy())
	task.Value = total.String()
	v, err := x.e.gate.judge(ctx, x.module, task, x.terms.Threshold)
	if err != nil {
		return err
	}
	stored := store.Decision{Subject: subject, Effect: string(v.Decision.Effect), Reasons: mustJSON(v.Decision.Reasons), Policy: v.Policy, Input: mustJSON(v)}
	switch {
	case v.Decision.Effect == policy.Deny:
		return errors.Join(&DeniedError{v.Decision.Reasons}, w.e.db.AddDecision(ctx, w.lease, w.Run.ID, stored))
	case v.Decision.Effect == policy.RequireApproval && x.verdict.subject(&v) != "trust":
		return w.approved(ctx, stored, v.Decision, tx)
	}
	return nil
}
