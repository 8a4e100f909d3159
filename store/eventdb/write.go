package eventdb

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/hourdb"
)

// Batch is a range of consecutive blocks of one chain with all their records.
type Batch struct {
	ChainID uint64
	// Lease must be held by this process; the zero Lease is not checked (tests, imports).
	Lease store.Lease
	// Parent must equal the stored cursor in number and hash. Its hash is zero before the
	// first block.
	Parent repute.Block
	// To becomes the cursor. Records hold all events in (Parent.Number, To.Number].
	To repute.Block
	// Blocks are headers: at least of every block with records, and of every block that is
	// not final.
	Blocks []repute.Block
	// Records are ordered by block and log index and hold whole blocks, so that no transaction
	// of the chain is split.
	Records []repute.Record
	// Waiting, when not nil, is set to how many of the records wait for a missing one.
	Waiting *int
	// Prepared is what Prepare returned for Records, nil when it was not called.
	Prepared *Prepared
	// Prefetched is what Prefetch returned for this batch, nil when it was not called. Apply
	// finishes or discards it.
	Prefetched *Prefetched
	// Backfill writes one `backfilled` change instead of one per event.
	Backfill bool
}

// Apply stores a batch in one transaction: events, histories, current rows, cursor, covered range
// and changes. repute.ErrFenced when the lease is lost or the cursor is not b.Parent: nothing is
// stored then, and the caller must read the cursor again.
func Apply(ctx context.Context, db *store.DB, b Batch) error {
	defer b.Prefetched.Discard()
	ids, err := prepare(ctx, db, &b)
	if err != nil {
		return err
	}
	return storeBatch(ctx, db, "apply", &b, ids, nil, func(_ pgx.Tx, c *chaindb.ChainRow) error {
		if !sameBlock(c.Cursor, b.Parent) {
			return fmt.Errorf("cursor is block %d %s: %w", c.Cursor.Number, c.Cursor.Hash, repute.ErrFenced)
		}
		return nil
	})
}

// storeBatch calls first, unless it is nil, takes the lease and the chain, calls begin, which brings the chain to the
// batch's parent, and applies the batch, in one transaction. With first that is not the transaction of the prefetch.
// The first attempt takes a client's feedback number 1 for its first one without looking, because the registry counts
// so, and times to ascend with blocks. When a stored row contradicts that, the second attempt looks.
func storeBatch(ctx context.Context, db *store.DB, doing string, b *Batch, ids docdb.Interned,
	first func(pgx.Tx) error, begin func(pgx.Tx, *chaindb.ChainRow) error) error {
	attempt := func(j *job) func(pgx.Tx) error {
		return func(tx pgx.Tx) error {
			if first != nil {
				if err := first(tx); err != nil {
					return err
				}
			}
			c, err := BeginWrite(ctx, tx, b.ChainID, b.Lease)
			if err != nil {
				return err
			}
			if err := begin(tx, c); err != nil {
				return err
			}
			j.known = store.Kept(db, newRowCache).take(c)
			return applyBatch(ctx, tx, c, b, j)
		}
	}
	if first == nil && b.Prefetched.of(b) {
		j := startJob(b, ids, false, true)
		err := b.Prefetched.finish(ctx, attempt(j))
		if err == nil || ctx.Err() != nil {
			return j.keep(store.Kept(db, newRowCache), err)
		}
	}
	b.Prefetched.Discard() // another transaction shows whether anything is wrong with the batch
	for _, careful := range []bool{false, true} {
		j := startJob(b, ids, careful, false)
		err := db.InTx(ctx, pgx.TxOptions{}, b.doing(doing), attempt(j))
		var pg *pgconn.PgError
		if careful || !errors.As(err, &pg) ||
			pg.ConstraintName != "feedback_pkey" && pg.ConstraintName != "hours_pkey" {
			return j.keep(store.Kept(db, newRowCache), err)
		}
	}
	return nil
}

// Prepared is the result of the part of storing records that needs no transaction.
type Prepared struct {
	// records are those that were prepared, compared by identity.
	records []repute.Record
	// ids are the interned strings.
	ids docdb.Interned
}

// Prepare interns the strings of records, while an earlier batch is stored. It may be called for
// records that are never stored.
func Prepare(ctx context.Context, db *store.DB, records []repute.Record) (*Prepared, error) {
	ids, err := docdb.Intern(ctx, db, records)
	if err != nil {
		return nil, err
	}
	return &Prepared{records, ids}, nil
}

// of reports whether these records were prepared.
func (p *Prepared) of(records []repute.Record) bool {
	return p != nil && sameRecords(p.records, records)
}

// prepare checks the batch and interns its strings before any lock is taken.
func prepare(ctx context.Context, db *store.DB, b *Batch) (docdb.Interned, error) {
	if err := b.check(); err != nil {
		return docdb.Interned{}, fmt.Errorf("%s: %w", b.doing("check"), err)
	}
	if b.Prepared.of(b.Records) {
		return b.Prepared.ids, nil
	}
	return docdb.Intern(ctx, db, b.Records)
}

// doing returns the description of an operation on the batch, for errors.
func (b *Batch) doing(what string) string {
	return fmt.Sprintf("%s chain %d blocks %d to %d", what, b.ChainID, b.Parent.Number+1, b.To.Number)
}

// sameBlock reports whether number and hash are equal.
func sameBlock(a, b repute.Block) bool { return a.Number == b.Number && a.Hash == b.Hash }

// check refuses a batch that would break the order or the completeness of the
// stored events.
func (b *Batch) check() error {
	if b.To.Number < b.Parent.Number || b.To.Hash == (common.Hash{}) && b.To.Number > b.Parent.Number {
		return repute.Invalid("to", "is before parent or has no hash", "the last block of the batch")
	}
	hashes := make(map[uint64]common.Hash, len(b.Blocks)+1)
	for _, h := range b.Blocks {
		hashes[h.Number] = h.Hash
	}
	if to, ok := hashes[b.To.Number]; ok && to != b.To.Hash {
		return repute.Invalid("to", "has another hash than the header", "headers and cursor of one chain")
	}
	last := chaindb.Point{Block: b.Parent.Number, Log: ^uint32(0)}
	for i := range b.Records {
		l := &b.Records[i].Log
		at := chaindb.PointOf(l)
		if err := Placed(l); err != nil {
			return err
		}
		if !before(last, at) || l.BlockNumber > b.To.Number || l.Removed {
			return repute.Invalid("records", fmt.Sprintf("log %d of block %d is out of order, out of range or removed",
				at.Log,
				at.Block), "records in order")
		}
		if h, ok := hashes[l.BlockNumber]; !ok || h != l.BlockHash {
			return repute.Invalid("blocks", fmt.Sprintf("no header with the hash that log %d of block %d names", at.Log,
				at.Block), "a header per block with records")
		}
		last = at
	}
	return nil
}

// Placed refuses a log whose block or index does not fit its column.
func Placed(l *types.Log) error {
	if l.Index <= math.MaxInt32 && l.TxIndex <= math.MaxInt32 {
		return nil
	}
	return repute.Invalid("records", fmt.Sprintf("log %d of transaction %d of block %d is at no place of a block",
		l.Index, l.TxIndex, l.BlockNumber),
		"indexes below 2^31")
}

// before reports whether p is before q.
func before(p chaindb.Point, q chaindb.Point) bool {
	return p.Block < q.Block || p.Block == q.Block && p.Log < q.Log
}

// BeginWrite begins a write of a chain: it locks the row, checks the lease and sets up plans by
// key.
func BeginWrite(ctx context.Context, tx pgx.Tx, chainID uint64, l store.Lease) (*chaindb.ChainRow, error) {
	if err := store.HoldLease(ctx, tx, l); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, store.PlanByKey); err != nil {
		return nil, err
	}
	return chaindb.LockChain(ctx, tx, chainID)
}

// applyBatch applies the batch to a chain whose row is locked.
func applyBatch(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, b *Batch, j *job) error {
	d, err := storeAndFold(ctx, tx, c, b, j)
	if err != nil {
		return err
	}
	if b.Waiting != nil {
		*b.Waiting = d.waiting()
	}
	if err := d.Write(ctx, tx, c.ID); err != nil {
		return err
	}
	if b.Backfill && b.To.Number > b.Parent.Number && c.Identity != (common.Address{}) {
		d.changes = []ChangeRow{Backfilled(b.Parent.Number+1, b.To.Number)}
	}
	if err := StoreChanges(ctx, tx, c.ID, d.changes); err != nil {
		return err
	}
	if err := Cover(ctx, tx, c.ID, repute.BlockRange{From: b.Parent.Number + 1, To: b.To.Number}); err != nil {
		return err
	}
	return advance(ctx, tx, b)
}

// job is the part of a batch that is computed while the transaction begins.
type job struct {
	fold   chan *fold
	events chan *EventRows // nil: they and the headers are stored already
	known  *cachedChain    // what need not be loaded
	folded *fold           // nil while there is none
}

// keep caches the rows that the batch wrote when err, the result of the commit, is nil.
func (j *job) keep(r *rowCache, err error) error {
	if err != nil {
		return err
	}
	if j.folded != nil {
		j.known.learn(j.folded)
	}
	r.keep(j.known)
	return nil
}

// startJob begins to compute the fold and, unless they are stored already, the rows of events.
func startJob(b *Batch, ids docdb.Interned, careful, stored bool) *job {
	j := &job{fold: make(chan *fold, 1)}
	if !stored {
		j.events = make(chan *EventRows, 1)
	}
	go func() {
		f := newFold(ids, b.Records)
		f.quiet, f.careful = b.Backfill, careful
		if stored {
			f.out.guessed = b.Prefetched.ratings
		}
		if f.out.hours = hourdb.Of(b.Blocks, b.Parent); careful {
			f.out.hours = hourdb.Of(b.Blocks, repute.Block{})
		}
		j.fold <- f
		if j.events != nil {
			j.events <- EncodeEvents(b.ChainID, b.Records)
		}
	}()
	return j
}

// storeAndFold stores the events and folds them, each while the other waits: events are encoded
// while the database returns the state, and folded while the database stores them.
func storeAndFold(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, b *Batch, j *job) (*Delta, error) {
	if j.events != nil {
		if err := storeBlocks(ctx, tx, c.ID, b); err != nil {
			return nil, err
		}
	}
	if len(b.Records) == 0 {
		return &Delta{}, nil
	}
	f := <-j.fold
	f.chain, f.parent, j.folded = c, b.Parent.Number, f
	if !f.careful {
		j.known.fill(f)
	}
	if err := f.load(ctx, tx); err != nil {
		return nil, err
	}
	if j.events == nil {
		return &f.out, f.run(b.Records)
	}
	folded := make(chan error, 1)
	go func() { folded <- f.run(b.Records) }()
	err := (<-j.events).Send(ctx, tx)
	if foldErr := <-folded; foldErr != nil {
		return nil, foldErr
	}
	return &f.out, err
}

// waiting returns how many records wait for a missing one.
func (d *Delta) waiting() (n int) {
	for i := range d.Pending {
		switch d.Pending[i].reason {
		case chaindb.WaitsForAgent, chaindb.WaitsForIndex, chaindb.WaitsForFeedback, chaindb.WaitsForRequest:
			n++
		}
	}
	return n
}

// Backfilled returns the one change that stands for all changes of a range of blocks.
func Backfilled(from, to uint64) ChangeRow {
	return ChangeRow{Kind: changedata.KindBackfilled, At: chaindb.Point{Block: to}, From: from,
		Data: changedata.Marshal(backfilledData{from, to})}
}

// FoldRecords loads the state that records name and folds them, without changes for the feed.
func FoldRecords(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, records []repute.Record,
	ids docdb.Interned) (*Delta, error) {
	f := newFold(ids, records)
	f.chain, f.parent, f.quiet, f.careful = c, math.MaxInt64, true, true
	if err := f.load(ctx, tx); err != nil {
		return nil, err
	}
	var err error
	if f.out.hours, err = hourdb.Load(ctx, tx, c.ID, blocksOf(records)); err != nil {
		return nil, err
	}
	return &f.out, f.run(records)
}

// blocksOf returns the numbers of the blocks of ordered records.
func blocksOf(records []repute.Record) (numbers []uint64) {
	for i := range records {
		if n := records[i].Log.BlockNumber; len(numbers) == 0 || numbers[len(numbers)-1] != n {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Cover adds a range to the blocks whose events are stored.
func Cover(ctx context.Context, tx pgx.Tx, chainID uint64, r repute.BlockRange) error {
	if r.To < r.From {
		return nil
	}
	_, err := tx.Exec(ctx,
		"update chains set covered = covered + int8multirange(int8range($2, $3, '[]')) where chain_id = $1", chainID,
		r.From, r.To)
	return store.Failed("cover", err)
}

// advance moves the cursor if it is still the batch's parent and the lease is still held. It is the
// last statement before the commit.
func advance(ctx context.Context, tx pgx.Tx, b *Batch) error {
	tag, err := tx.Exec(ctx, `
		update chains set cursor_block = $4, cursor_hash = $5, cursor_time = $6
		where chain_id = $1 and cursor_block = $2 and cursor_hash = $3 and ($7 = '' or exists (
			select from leases where name = $7 and owner = $8 and epoch = $9 and expires_at > clock_timestamp()))`,
		b.ChainID, b.Parent.Number, column.HashBytes(b.Parent.Hash), b.To.Number, column.HashBytes(b.To.Hash),
		column.MaybeTime(b.To.Time),
		b.Lease.Name, b.Lease.Owner, b.Lease.Epoch)
	if err == nil && tag.RowsAffected() == 0 {
		return repute.ErrFenced
	}
	return err
}
