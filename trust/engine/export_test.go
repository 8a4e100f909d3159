package engine

import (
	"context"
	"errors"
	"time"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/scoredb"
	"repute/trust/rows"
)

// Steps lets a benchmark do an engine's steps itself.
type Steps struct{ k *keeper }

// NewSteps makes an engine of one chain that does not run.
func NewSteps(db *store.DB, params []byte, chain uint64) (*Steps, error) {
	e, err := New(db, EngineOptions{Params: params})
	if err != nil {
		return nil, err
	}
	return &Steps{newKeeper(e, chain)}, err
}

// Walk takes over the newest run.
func (s *Steps) Walk(ctx context.Context) error {
	_, err := s.k.walk(ctx)
	return err
}

// Reads is how often roots and links were read.
func (s *Steps) Reads() int { return s.k.reads }

// Follow marks what is stale and scores it, and tells how many agents that were.
func (s *Steps) Follow(ctx context.Context) (int, error) {
	if _, err := scoredb.ResolveMarks(ctx, s.k.db, s.k.chain, 1000); err != nil {
		return 0, err
	}
	return s.k.scoreSome(ctx, byEvent, 64)
}

// SmallBatches makes an engine pass over few agents at a time.
func SmallBatches(e *Engine) { e.batch = 3 }

// SmallBatches makes the engine pass over few agents at a time.
func (s *Steps) SmallBatches() { SmallBatches(s.k.Engine) }

// Rescore scores all agents for the newest run: by a pass, or each agent for itself as after an
// event.
func (s *Steps) Rescore(ctx context.Context, byPass bool) error {
	for more := true; more; {
		var err error
		if !byPass {
			if err = staleInsteadOfPass(ctx, s.k); err != nil {
				return err
			}
		}
		if more, err = s.k.rescore(ctx); err != nil {
			return err
		}
	}
	return nil
}

// staleInsteadOfPass marks all agents one by one, where a pass would score them.
func staleInsteadOfPass(ctx context.Context, k *keeper) error {
	p, err := scoredb.ReadPass(ctx, k.db, k.chain)
	if errors.Is(err, repute.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	agents, _, err := scoredb.NewEffects(k.db).Next(ctx, p, nil, 1000)
	if err != nil {
		return err
	}
	for _, a := range agents {
		if _, err := k.db.Pool().Exec(ctx,
			"insert into trust_stale (chain_id, token_id, cause, final) values ($1, $2, 1, $3)",
			k.chain, column.TokenNum(a.TokenID), p.Final); err != nil {
			return err
		}
	}
	_, err = k.db.Pool().Exec(ctx, "update trust_runs set scored_to = null where chain_id = $1", k.chain)
	return err
}

// Pass passes over all agents in batches of the usual size.
func (s *Steps) Pass(ctx context.Context) error {
	s.k.batch = passAgents
	_, err := s.k.pass(ctx)
	return err
}

// Stayed is how many agents passes scored that needed no memory of their own.
func (s *Steps) Stayed() int { return s.k.stayed }

// IsWarm reports whether the last pass read only what changed.
func (s *Steps) IsWarm() bool { return s.k.effects.IsWarm() }

// RenewOften makes an engine renew the lease of a pass after each so long a time.
func (s *Steps) RenewOften(every time.Duration) { s.k.renewal = every }

// Renewing does work under a lease of a pass, as a pass reads rows again.
func (s *Steps) Renewing(ctx context.Context, l store.Lease, work func(context.Context) error) error {
	return s.k.renewing(ctx, l, work)
}

// Grown is how often the kept account of an agent was continued.
func (s *Steps) Grown() int {
	if r := s.k.scorers[byEvent]; r != nil {
		return r.grown
	}
	return 0
}

// ForgetRatings makes an engine read the ratings of agents from the database instead of memory.
func (s *Steps) ForgetRatings() {
	s.k.rows = rows.New(s.k.db, s.k.chain)
	s.k.basis.Load().built.forget()
}
