package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// intend stores the calls of a dry run: Execute may send only these.
func (w *work) intend(ctx context.Context, r standard.DryRun, ran bool) error {
	w.intended, w.dryRan = nil, ran
	for i := range r.Calls {
		d, err := w.declare(ctx, r.Calls[i])
		if err != nil {
			return fmt.Errorf("call %d of the dry run: %w", i+1, err)
		}
		w.intended = append(w.intended, d)
	}
	return nil
}

// foresee decides about a dry run with placeholders by the worst values that they allow. If that is
// denied Execute does not begin. A question for a person is asked when the transaction is sent.
func (w *work) foresee(ctx context.Context, list []*transaction.Declared) (out []policy.Reason, err error) {
	if !slices.ContainsFunc(list, func(d *transaction.Declared) bool { return len(d.Placeholders) > 0 }) {
		return nil, nil
	}
	p := w.e.o.Policy()
	var total transaction.Moves
	var all policy.Decision
	for _, d := range list {
		cases, err := d.Cases(&d.Tx)
		if errors.Is(err, repute.ErrInvalid) {
			return []policy.Reason{{ID: "dry_run.placeholder", Effect: policy.Deny, Text: err.Error()}}, nil
		}
		for i := range cases {
			in := w.callInput(p, &cases[i], d.Listed)
			all.Merge(p.Decide(ctx, &in))
		}
		worst, err := transaction.WorstOf(p, cases, d, d.Leaves)
		if err != nil {
			return nil, err
		}
		total.Join(worst)
	}
	if err := w.foreseeTrust(ctx, &total, &all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all.Reasons, func(r policy.Reason) bool { return r.Effect != policy.Deny }), nil
}

// foreseeTrust adds the trust gate's decisions about the agents of a dry run that moves more value
// than the task declares to be at risk.
func (w *work) foreseeTrust(ctx context.Context, total *transaction.Moves, all *policy.Decision) error {
	declared, err := transaction.ParseAmount(w.terms.ValueAtRisk)
	if err != nil || !total.Over(declared) {
		return err
	}
	for x := w; x != nil; x = x.parent {
		task := x.policyTask(x.e.o.Policy())
		task.Value = total.Value()
		v, err := x.judge(ctx, x.module, task)
		if err != nil {
			return fmt.Errorf("%w: %w", journal.ErrRuntime, err)
		}
		all.Merge(v.Decision)
	}
	return nil
}

// declare checks a call of the dry run. The error is repute.ErrInvalid or one of the runtime.
func (w *work) declare(ctx context.Context, tx transaction.Tx) (*transaction.Declared, error) {
	listed, err := w.listed(ctx, &tx)
	if err != nil {
		return nil, err
	}
	registry := slices.ContainsFunc(w.e.o.Registries, func(r safety.Registries) bool {
		return r.ChainID == tx.ChainID && r.Has(tx.Target)
	})
	return transaction.Declare(tx, listed, registry, w.e.calls)
}
