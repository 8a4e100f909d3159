package orchestrator

import (
	"context"
	"fmt"

	"repute/contracts"
	"repute/orchestrator/approval"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// show returns the description of a transaction for the person who must approve it.
func (w *work) show(ctx context.Context, tx *transaction.Tx, declared *transaction.Declared,
	s *transaction.Simulation, reasons []policy.Reason) (*approval.Shown,
	error) {
	out := &approval.Shown{Agent: approval.DescribeAgent(w.Run.Agent, &w.gateDecision),
		ValueAtRisk: transaction.OrZero(w.terms.ValueAtRisk),
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
