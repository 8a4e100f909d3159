package orchestrator

import (
	"context"
	"fmt"

	"repute/contracts"
	"repute/policy"
)

// show collects what a person sees of a transaction.
func (w *work) show(ctx context.Context, tx *Tx, declared *declared, s *Simulation, reasons []policy.Reason) (*Shown,
	error) {
	out := &Shown{Agent: shownAgent(w.Run.Agent, &w.verdict), ValueAtRisk: orZero(w.terms.ValueAtRisk),
		Declared: []Placeholder{}, Reasons: reasons}
	if declared != nil {
		out.Declared = append(out.Declared, declared.Placeholders...)
	}
	listed, err := w.listed(ctx, tx)
	if err != nil {
		return nil, err
	}
	d := describer{db: w.e.db, calls: w.e.calls, tokens: w.e.o.Tokens, registries: w.e.o.Registries, names: w.e.o.Names}
	if err := d.describe(ctx, out, tx, listed, s); err != nil {
		return nil, fmt.Errorf("%w: %w", errRuntime, err)
	}
	return out, nil
}

// listed is ListedFunction of a transaction. The error is one of the runtime.
func (w *work) listed(ctx context.Context, tx *Tx) (*contracts.Function, error) {
	f, err := ListedFunction(ctx, w.e.db, tx.ChainID, tx.Target, tx.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRuntime, err)
	}
	return f, nil
}
