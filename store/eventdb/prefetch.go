package eventdb

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Prefetched is a batch that is being stored while the batch before it is still applied. Headers
// and events do not depend on stored rows, so they go into a transaction of their own. Apply
// continues in that transaction, so the batch becomes visible as a whole, and only if its parent is
// the cursor by then.
type Prefetched struct {
	batch Batch
	// ratings are rows of feedback that are stored too, as if every rating of the batch counted. Apply deletes those
	// that do not. Nil when ratings are left to Apply.
	ratings []*feedbackRow
	// rest passes the remaining work of Apply to the goroutine that has the transaction.
	rest   chan func(pgx.Tx) error
	cancel context.CancelFunc
	// done is closed when the transaction has ended and err is set.
	done chan struct{}
	err  error
}

// maxPrefetched is how many such transactions one process may have open. The other connections are
// needed for everything else.
const maxPrefetched = 2

// prefetchSlots is a semaphore with maxPrefetched places.
type prefetchSlots chan struct{}

// newPrefetchSlots returns a semaphore with all places free.
func newPrefetchSlots() *prefetchSlots {
	slots := make(prefetchSlots, maxPrefetched)
	return &slots
}

// Prefetch begins to store b before its parent is the cursor. A wrong guess costs only time. The
// result goes into Batch.Prefetched or MUST be discarded. It returns nil when too many are open.
//
// applied are the records of the batch that is being applied meanwhile. That one would wait for this one if both stored
// the same rating, as logs of a lying node can have it, and this one waits for that one: b's ratings are left to Apply
// then. A repair that finds such a rating fails by the lock's timeout, and is tried again like any other.
func Prefetch(ctx context.Context, db *store.DB, b Batch, applied []repute.Record) *Prefetched {
	slots := *store.Kept(db, newPrefetchSlots)
	select {
	case slots <- struct{}{}:
	default:
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &Prefetched{batch: b, ratings: ratingsOf(&b, applied), rest: make(chan func(pgx.Tx) error), cancel: cancel,
		done: make(chan struct{})}
	go func() {
		defer close(a.done) // last: who waits for it finds a free place
		defer cancel()
		defer func() { <-slots }()
		a.err = db.InTx(ctx, pgx.TxOptions{}, b.doing("store ahead"), func(tx pgx.Tx) error {
			if err := storePrefetched(ctx, tx, &b, a.ratings); err != nil {
				return err
			}
			select {
			case rest := <-a.rest:
				return rest(tx)
			case <-ctx.Done():
				return ctx.Err()
			case <-db.Closed():
				return fmt.Errorf("closing: %w", context.Canceled)
			}
		})
	}()
	return a
}

// storePrefetched stores headers, events and ratings. It takes neither the chain's row nor the exclusive
// lock of the lease, which the batch before it holds.
func storePrefetched(ctx context.Context, tx pgx.Tx, b *Batch, ratings []*feedbackRow) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := store.HoldLeasePrefetch(ctx, tx, b.Lease); err != nil {
		return err
	}
	if err := storeLogs(ctx, tx, b); err != nil {
		return err
	}
	return encodeFeedback(b.ChainID, ratings).Send(ctx, tx)
}

// ratingsOf returns the rows of the ratings of a batch, nil when its strings are not interned, or when it has a rating
// twice or one that applied has too.
func ratingsOf(b *Batch, applied []repute.Record) (rows []*feedbackRow) {
	if !b.Prepared.of(b.Records) {
		return nil
	}
	seen := make(map[ratingKey]bool, len(applied)+len(b.Records))
	for i := range applied {
		if e, ok := applied[i].Event.(repute.NewFeedback); ok {
			seen[ratingKey{pairKey{e.TokenID, e.Client}, e.Index}] = true
		}
	}
	for i := range b.Records {
		e, ok := b.Records[i].Event.(repute.NewFeedback)
		if !ok || e.Decimals > repute.MaxDecimals || e.Index == 0 || e.Index > math.MaxInt64 {
			continue // never stored as a rating
		}
		key := ratingKey{pairKey{e.TokenID, e.Client}, e.Index}
		if seen[key] {
			return nil
		}
		seen[key] = true
		rows = append(rows, newFeedbackRow(e, chaindb.PointOf(&b.Records[i].Log), b.Prepared.ids))
	}
	return rows
}

// storeLogs stores the rows of a batch that do not depend on stored rows.
func storeLogs(ctx context.Context, tx pgx.Tx, b *Batch) error {
	if err := storeBlocks(ctx, tx, b.ChainID, b); err != nil {
		return err
	}
	return EncodeEvents(b.ChainID, b.Records).Send(ctx, tx)
}

// of reports whether this transaction stores the events of batch b.
func (a *Prefetched) of(b *Batch) bool {
	return a != nil && a.batch.ChainID == b.ChainID && a.batch.Lease == b.Lease &&
		sameBlock(a.batch.Parent, b.Parent) && sameBlock(a.batch.To, b.To) && sameRecords(a.batch.Records, b.Records)
}

// sameRecords reports whether two slices are the same memory.
func sameRecords(a, b []repute.Record) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// finish runs rest in the transaction and ends it. After an error nothing is stored, except that a
// commit whose answer was lost may have happened.
func (a *Prefetched) finish(ctx context.Context, rest func(pgx.Tx) error) error {
	defer context.AfterFunc(ctx, a.cancel)()
	select {
	case a.rest <- rest:
	case <-a.done:
	}
	<-a.done
	return a.err
}

// Discard rolls back what Apply did not take over. It may be called at any time, also on nil.
func (a *Prefetched) Discard() {
	if a == nil {
		return
	}
	a.cancel()
	<-a.done
}
