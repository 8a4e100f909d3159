package eventdb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Ahead is a batch on its way into the database while the one before it is still
// being applied: headers and events, which need no look at what is stored, go into
// a transaction of their own. Apply goes on in that transaction, so that the batch
// becomes visible as a whole and only where its parent is the cursor by then.
type Ahead struct {
	batch  Batch
	rest   chan func(pgx.Tx) error // what Apply has left to do
	cancel context.CancelFunc
	done   chan struct{} // closed when the transaction has ended and err is set
	err    error
}

// aheadMost is how many transactions of one process may be open ahead of their
// turn: the connections left must do for everything else.
const aheadMost = 2

// aheadSlots has a place for every transaction ahead of its turn.
type aheadSlots chan struct{}

func newAheadSlots() *aheadSlots {
	slots := make(aheadSlots, aheadMost)
	return &slots
}

// Prefetch begins to store b ahead of its turn, which b.Parent tells. It may turn out
// wrong at no cost but time. The result goes into Batch.Ahead, or must be
// discarded. Nil when too many are open already.
func Prefetch(ctx context.Context, db *store.DB, b Batch) *Ahead {
	slots := *store.Kept(db, newAheadSlots)
	select {
	case slots <- struct{}{}:
	default:
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &Ahead{batch: b, rest: make(chan func(pgx.Tx) error), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer func() { <-slots }()
		defer cancel()
		defer close(a.done)
		a.err = db.InTx(ctx, pgx.TxOptions{}, b.doing("store ahead"), func(tx pgx.Tx) error {
			if err := storeAhead(ctx, tx, &b); err != nil {
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

// storeAhead leaves the chain's row and the lease's lock to the batch before.
func storeAhead(ctx context.Context, tx pgx.Tx, b *Batch) error {
	if err := b.check(); err != nil {
		return err
	}
	if err := store.HoldLeaseAhead(ctx, tx, b.Lease); err != nil {
		return err
	}
	return storeLogs(ctx, tx, b)
}

// storeLogs stores what of a batch does not depend on anything stored.
func storeLogs(ctx context.Context, tx pgx.Tx, b *Batch) error {
	if err := storeBlocks(ctx, tx, b.ChainID, b); err != nil {
		return err
	}
	return EncodeEvents(b.ChainID, b.Records).Send(ctx, tx)
}

// of tells whether the events of this very batch are being stored.
func (a *Ahead) of(b *Batch) bool {
	return a != nil && a.batch.ChainID == b.ChainID && a.batch.Lease == b.Lease &&
		sameBlock(a.batch.Parent, b.Parent) && sameBlock(a.batch.To, b.To) && sameRecords(a.batch.Records, b.Records)
}

// sameRecords tells whether two slices are one.
func sameRecords(a, b []repute.Record) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// finish does the rest in the same transaction and ends it. Nothing is stored
// after an error, except that a commit whose answer got lost may have happened.
func (a *Ahead) finish(ctx context.Context, rest func(pgx.Tx) error) error {
	defer context.AfterFunc(ctx, a.cancel)()
	select {
	case a.rest <- rest:
	case <-a.done:
	}
	<-a.done
	return a.err
}

// Discard undoes what Apply did not take over. It may be called at any time, also
// for nil.
func (a *Ahead) Discard() {
	if a == nil {
		return
	}
	a.cancel()
	<-a.done
}
