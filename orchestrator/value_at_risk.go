package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"math/big"

	"repute"
	"repute/contracts"
	"repute/orchestrator/approval"
	"repute/orchestrator/journal"
	"repute/orchestrator/pending"
	"repute/orchestrator/transaction"
	"repute/orchestrator/trustgate"
	"repute/policy"
)

// trusted asks the trust gate again if a task moves more value than it declared: the agent, and
// those that it works for, must be trusted with all of it. call is the journal key of tx; total
// contains the moves of tx, to which those of the others are added.
func (w *work) trusted(ctx context.Context, call string, tx *transaction.Tx, total *transaction.Moves,
	shown *transaction.Declared, s *transaction.Simulation) error {
	declared, err := transaction.ParseAmount(w.terms.ValueAtRisk)
	if err != nil || !total.Over(new(big.Int)) {
		return err
	}
	if err := pending.Moved(ctx, w.e.db, w.e.o.Policy(), w.Run.Task, w.Run.ID, call, total); err != nil ||
		!total.Over(declared) {
		return err
	}
	for x := w; x != nil; x = x.parent {
		if err := w.trustedWith(ctx, x, "value of "+x.Run.Agent+" "+call, total.Value(),
			func(v *trustgate.Decision) (*approval.Shown, error) {
				seen, err := w.show(ctx, tx, shown, s, transaction.Against(v.Decision.Reasons))
				if err == nil {
					seen.Agent = approval.DescribeAgent(x.Run.Agent, v)
				}
				return seen, err
			}); err != nil {
			return err
		}
	}
	return nil
}

// trustedWith decides about the agent of x for a value. An approval in phase trust applies to the
// declared value only.
func (w *work) trustedWith(ctx context.Context, x *work, subject, value string,
	show func(*trustgate.Decision) (*approval.Shown, error)) error {
	task := x.policyTask(x.e.o.Policy())
	task.Value = value
	v, err := x.judge(ctx, x.module, task)
	if err != nil {
		return err
	}
	shown, err := show(&v)
	if err != nil {
		return err
	}
	stored := v.Stored(repute.PhaseExecute, repute.DecisionValue,
		subject+" "+shown.Hash()+x.programSuffix(v.Decision.Effect))
	stored.Input = journal.JSON(asked{Decision: &v, Shown: shown})
	return w.enforce(ctx, stored, v.Decision, shown)
}

// judge returns the decision of the trust gate about module m of a run, for a task.
func (w *work) judge(ctx context.Context, m repute.Module, task policy.Task) (trustgate.Decision, error) {
	v, err := w.e.gate.Decide(ctx, m, task, w.terms.Threshold)
	v.Manifest = w.manifest
	return v, err
}

// show returns the description of a transaction for the person who must approve it.
func (w *work) show(ctx context.Context, tx *transaction.Tx, declared *transaction.Declared,
	s *transaction.Simulation, reasons []policy.Reason) (*approval.Shown, error) {
	out := &approval.Shown{Agent: approval.DescribeAgent(w.Run.Agent, &w.gateDecision),
		ValueAtRisk: cmp.Or(w.terms.ValueAtRisk, "0"),
		Declared:    []transaction.Placeholder{}, Reasons: reasons}
	if declared != nil {
		out.Declared = append(out.Declared, declared.Placeholders...)
	}
	listed, err := w.listed(ctx, tx)
	if err != nil {
		return nil, err
	}
	d := approval.Describer{Db: w.e.db, Calls: w.e.calls, Tokens: w.e.o.Tokens, Registries: w.e.o.Registries,
		Names: w.e.o.Names}
	if err := d.Describe(ctx, out, tx, listed, s); err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	return out, nil
}

// listed returns the function that an allow-list names for a transaction. The error is one of the
// runtime.
func (w *work) listed(ctx context.Context, tx *transaction.Tx) (*contracts.Function, error) {
	f, err := approval.ListedFunction(ctx, w.e.db, tx.ChainID, tx.Target, tx.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", journal.ErrRuntime, err)
	}
	return f, nil
}
