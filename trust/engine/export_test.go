package engine

import (
	"context"

	"repute/store"
	"repute/store/trustdb"
)

// Steps lets a benchmark do an engine's steps itself.
type Steps struct{ k *keeper }

// NewSteps makes an engine of one chain that does not run.
func NewSteps(db *store.DB, params []byte, chain uint64) (*Steps, error) {
	e, err := New(db, EngineOptions{Params: params})
	return &Steps{&keeper{Engine: e, chain: chain}}, err
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
	for ctx.Err() == nil { // somebody else's transaction may hold the feed back
		if n, err := trustdb.MarkStale(ctx, s.k.db, s.k.chain, 1000); n > 0 || err != nil {
			if err != nil {
				return 0, err
			}
			break
		}
	}
	return s.k.scoreSome(ctx, byEvent, 64)
}
