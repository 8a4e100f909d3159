package indexer

import (
	"context"
	"sync"

	"repute/store/eventdb"
)

// apply stores the piece at the cursor and beside it, ahead of its turn, what can
// be stored of the next one: the database has one processor per connection.
func (f *Follower) apply(ctx context.Context, b eventdb.Batch, p *piece) error {
	var beside sync.WaitGroup
	until, cancel := context.WithCancel(ctx)
	if next := f.ahead.starting(p.q.To + 1); next != nil && !next.q.Linked {
		beside.Go(func() { f.storeAhead(until, b, next) })
	}
	err := eventdb.Apply(ctx, f.db, b)
	cancel()
	beside.Wait()
	if err != nil {
		f.ahead.drop()
	}
	return err
}

// storeAhead begins to store the piece that fl brings behind batch b, if it comes
// while b is being applied.
func (f *Follower) storeAhead(ctx context.Context, b eventdb.Batch, fl *flight) {
	select {
	case <-ctx.Done():
		return
	case <-fl.done:
	}
	if fl.err != nil || len(fl.piece.records) == 0 || fl.piece.continues(b.To) != nil {
		return
	}
	// It outlives this step, not the piece.
	fl.piece.stored = eventdb.Prefetch(context.WithoutCancel(ctx), f.db, f.batch(b.Lease, b.To, fl.piece))
}
