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
	"repute/store/docdb"
)

// Batch is a run of consecutive blocks of one chain with all their records.
type Batch struct {
	ChainID uint64
	// Lease fences the write; the zero Lease does not (tests, imports).
	Lease store.Lease
	// Parent must be the stored cursor, number and hash. Its hash is zero before
	// the first block.
	Parent repute.Block
	// To becomes the cursor: Records hold everything in (Parent.Number, To.Number].
	To repute.Block
	// Blocks are headers: at least of every block with records, and of every block
	// that may still be reorganised.
	Blocks []repute.Block
	// Records are in (block, log index) order, whole blocks only, so that no
	// transaction of the chain is ever split.
	Records []repute.Record
	// Waiting, when not nil, is set to how many of the records wait for one that is
	// missing.
	Waiting *int
	// Prepared is what Prepare made of Records, nil when nobody called it.
	Prepared *Prepared
	// Ahead is what Ahead made of this batch, nil when nobody called it. Apply uses
	// it up whatever comes.
	Ahead *Ahead
	// Backfill writes one `backfilled` change instead of one per event.
	Backfill bool
}

// Apply stores a batch in one transaction: events, histories, current rows,
// cursor, covered range and changes. repute.ErrFenced when the lease is lost or
// the cursor is not b.Parent: nothing is stored then, and the caller must look at
// the cursor again.
func Apply(ctx context.Context, db *store.DB, b Batch) error {
	defer b.Ahead.Discard()
	ids, err := prepare(ctx, db, &b)
	if err != nil {
		return err
	}
	return storeBatch(ctx, db, "apply", &b, ids, func(_ pgx.Tx, c *chaindb.ChainRow) error {
		if !sameBlock(c.Cursor, b.Parent) {
			return fmt.Errorf("cursor is block %d %s: %w", c.Cursor.Number, c.Cursor.Hash, repute.ErrFenced)
		}
		return nil
	})
}

// storeBatch brings the chain to the batch's parent by begin and applies the
// batch, in one transaction. A client's feedback number 1 is taken for its first
// without looking: the registry counts so. Should a stored one contradict that,
// the batch is done again, looking.
func storeBatch(ctx context.Context, db *store.DB, doing string, b *Batch, ids docdb.Interned, begin func(pgx.Tx, *chaindb.ChainRow) error) error {
	attempt := func(j *job) func(pgx.Tx) error {
		return func(tx pgx.Tx) error {
			c, err := BeginWrite(ctx, tx, b.ChainID, b.Lease)
			if err != nil {
				return err
			}
			if err := begin(tx, c); err != nil {
				return err
			}
			j.known = store.Kept(db, newRecall).take(c)
			return applyBatch(ctx, tx, c, b, j)
		}
	}
	if b.Ahead.of(b) {
		j := startJob(b, ids, false, true)
		err := b.Ahead.finish(ctx, attempt(j))
		if err == nil || ctx.Err() != nil {
			return j.keep(store.Kept(db, newRecall), err)
		}
	}
	b.Ahead.Discard() // another transaction shows whether anything is wrong with the batch
	for _, careful := range []bool{false, true} {
		j := startJob(b, ids, careful, false)
		err := db.InTx(ctx, pgx.TxOptions{}, b.doing(doing), attempt(j))
		var pg *pgconn.PgError
		if careful || !errors.As(err, &pg) || pg.ConstraintName != "feedback_pkey" {
			return j.keep(store.Kept(db, newRecall), err)
		}
	}
	return nil
}

// Prepared is the part of storing records that needs no transaction.
type Prepared struct {
	records []repute.Record
	ids     docdb.Interned
}

// Prepare does what of a batch can be done ahead, while an earlier one is stored:
// it gives ids to the strings of the records. It may be called for records that
// are never stored.
func Prepare(ctx context.Context, db *store.DB, records []repute.Record) (*Prepared, error) {
	ids, err := docdb.Intern(ctx, db, records)
	if err != nil {
		return nil, err
	}
	return &Prepared{records, ids}, nil
}

// of tells whether these very records were prepared.
func (p *Prepared) of(records []repute.Record) bool {
	return p != nil && sameRecords(p.records, records)
}

// prepare checks the batch and interns its strings, before any lock is taken.
func prepare(ctx context.Context, db *store.DB, b *Batch) (docdb.Interned, error) {
	if err := b.check(); err != nil {
		return docdb.Interned{}, fmt.Errorf("%s: %w", b.doing("check"), err)
	}
	if b.Prepared.of(b.Records) {
		return b.Prepared.ids, nil
	}
	return docdb.Intern(ctx, db, b.Records)
}

func (b *Batch) doing(what string) string {
	return fmt.Sprintf("%s chain %d blocks %d to %d", what, b.ChainID, b.Parent.Number+1, b.To.Number)
}

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
			return repute.Invalid("records", fmt.Sprintf("log %d of block %d is out of order, out of range or removed", at.Log, at.Block), "records in order")
		}
		if h, ok := hashes[l.BlockNumber]; !ok || h != l.BlockHash {
			return repute.Invalid("blocks", fmt.Sprintf("no header with the hash that log %d of block %d names", at.Log, at.Block), "a header per block with records")
		}
		last = at
	}
	return nil
}

// Placed refuses indexes that no block has and no column holds.
func Placed(l *types.Log) error {
	if l.Index <= math.MaxInt32 && l.TxIndex <= math.MaxInt32 {
		return nil
	}
	return repute.Invalid("records", fmt.Sprintf("log %d of transaction %d of block %d is at no place of a block", l.Index, l.TxIndex, l.BlockNumber),
		"indexes below 2^31")
}

func before(p chaindb.Point, q chaindb.Point) bool {
	return p.Block < q.Block || p.Block == q.Block && p.Log < q.Log
}

// BeginWrite starts a write of a chain: its row is locked, the lease is ours, and
// plans are made for keyed access whatever the statistics say. A batch reads and
// writes by key only; a hash join over a table that has just grown, or a generic
// plan made when it was empty, would scan it.
func BeginWrite(ctx context.Context, tx pgx.Tx, chainID uint64, l store.Lease) (*chaindb.ChainRow, error) {
	if err := store.HoldLease(ctx, tx, l); err != nil {
		return nil, err
	}
	if err := PlanByKey(ctx, tx); err != nil {
		return nil, err
	}
	return chaindb.LockChain(ctx, tx, chainID)
}

// PlanByKey has Postgres plan the statements of a transaction by their keys: the statistics of a table
// that grows by millions of rows are always old.
func PlanByKey(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `select set_config(name, value, true) from (values ('plan_cache_mode', 'force_custom_plan'),
		('enable_seqscan', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('jit', 'off')) v(name, value)`)
	return err
}

// applyBatch appends the batch to a chain whose row is locked.
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
	if b.Backfill && b.To.Number > b.Parent.Number {
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

// job is what a batch needs besides the database. It is made while the transaction
// begins.
type job struct {
	fold   chan *fold
	events chan *CopyBuffer // nil: they and the headers are stored already
	known  *recalled        // what need not be loaded
	folded *fold            // nil while there is none
}

// keep remembers what the batch left, once it is committed, which err says.
func (j *job) keep(r *recall, err error) error {
	if err != nil {
		return err
	}
	if j.folded != nil {
		j.known.learn(j.folded)
	}
	r.keep(j.known)
	return nil
}

func startJob(b *Batch, ids docdb.Interned, careful, stored bool) *job {
	j := &job{fold: make(chan *fold, 1)}
	if !stored {
		j.events = make(chan *CopyBuffer, 1)
	}
	go func() {
		f := newFold(ids, b.Records)
		f.quiet, f.careful = b.Backfill, careful
		j.fold <- f
		if j.events != nil {
			j.events <- EncodeEvents(b.ChainID, b.Records)
		}
	}()
	return j
}

// storeAndFold stores the events and folds them, the one while the database and
// the other while this process would wait for the other: events are encoded while
// state is loaded, and folded while they are stored.
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
	f.chain, j.folded = c, f
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

// waiting counts the records that have no effect until another one is found.
func (d *Delta) waiting() (n int) {
	for i := range d.Pending {
		switch d.Pending[i].reason {
		case chaindb.WaitsForAgent, chaindb.WaitsForIndex, chaindb.WaitsForFeedback, chaindb.WaitsForRequest:
			n++
		}
	}
	return n
}

// Backfilled is the one change that stands for all changes of a range of blocks.
func Backfilled(from, to uint64) ChangeRow {
	return ChangeRow{Kind: store.KindBackfilled, At: chaindb.Point{Block: to}, Data: store.Marshal(backfilledData{from, to})}
}

// FoldRecords loads what the records touch and folds them, without changes.
func FoldRecords(ctx context.Context, tx pgx.Tx, c *chaindb.ChainRow, records []repute.Record, ids docdb.Interned) (*Delta, error) {
	f := newFold(ids, records)
	f.chain, f.quiet, f.careful = c, true, true
	if err := f.load(ctx, tx); err != nil {
		return nil, err
	}
	return &f.out, f.run(records)
}

// Cover adds a range to what is known of the chain, joining ranges that touch.
func Cover(ctx context.Context, tx pgx.Tx, chainID uint64, r repute.BlockRange) error {
	if r.To < r.From {
		return nil
	}
	_, err := tx.Exec(ctx, "update chains set covered = covered + int8multirange(int8range($2, $3, '[]')) where chain_id = $1", chainID, r.From, r.To)
	return store.Failed("cover", err)
}

// advance moves the cursor, provided that it still is where the batch began and
// that the lease is still ours: the last statement before the commit.
func advance(ctx context.Context, tx pgx.Tx, b *Batch) error {
	tag, err := tx.Exec(ctx, `
		update chains set cursor_block = $4, cursor_hash = $5, cursor_time = $6
		where chain_id = $1 and cursor_block = $2 and cursor_hash = $3 and ($7 = '' or exists (
			select from leases where name = $7 and owner = $8 and epoch = $9 and expires_at > clock_timestamp()))`,
		b.ChainID, b.Parent.Number, store.HashBytes(b.Parent.Hash), b.To.Number, store.HashBytes(b.To.Hash), store.MaybeTime(b.To.Time),
		b.Lease.Name, b.Lease.Owner, b.Lease.Epoch)
	if err == nil && tag.RowsAffected() == 0 {
		return repute.ErrFenced
	}
	return err
}
