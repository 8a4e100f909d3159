package indexer

import (
	"context"
	"sync"

	"repute/store/eventdb"
)

// storeRange stores the piece at the cursor, and at the same time prefetches into the store what can
// already be stored of the next piece, because Postgres uses one processor per connection.
func (f *Follower) storeRange(ctx context.Context, b eventdb.Batch, p *piece) error {
	var background sync.WaitGroup
	until, cancel := context.WithCancel(ctx)
	if next := f.prefetch.startingAt(p.q.To + 1); next != nil && !next.q.Linked {
		background.Go(func() { f.prefetchStore(until, b, next) })
	}
	err := eventdb.Apply(ctx, f.db, b)
	cancel()
	background.Wait()
	if err != nil {
		f.prefetch.dropAll()
	}
	return err
}

// prefetchStore begins to store the piece of pr, which follows batch b, if it is fetched while b is being
// applied.
func (f *Follower) prefetchStore(ctx context.Context, b eventdb.Batch, pr *pendingRange) {
	select {
	case <-ctx.Done():
		return
	case <-pr.done:
	}
	if pr.err != nil || len(pr.piece.records) == 0 || pr.piece.continues(b.To) != nil {
		return
	}
	// What is stored belongs to the piece, which may outlast this step.
	pr.piece.stored = eventdb.Prefetch(context.WithoutCancel(ctx), f.db, f.batch(b.Lease, b.To, pr.piece),
		b.Records)
}
