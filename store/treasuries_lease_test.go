package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// A batch that checked its lease before a treasury was added may still store blocks without the treasury's events: they
// are a gap of the treasury.
func TestTreasuryAddedDuringABatch(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0")
	ctx, id := ctxOf(t), w.chain.ID
	lease, err := db.Acquire(ctx, chaindb.LeaseName(id), "indexer", time.Minute)
	ok(t, err)
	batch, err := db.Pool().Begin(ctx)
	ok(t, err)
	defer batch.Rollback(ctx)
	ok(t, store.HoldLease(ctx, batch, lease))

	added := make(chan error, 1)
	at := common.Address{19: 9}
	go func() { added <- chaindb.WatchTreasury(ctx, db, id, repute.WatchedContract{Address: at, From: 1}) }()
	time.Sleep(300 * time.Millisecond) // it has committed, or waits for the batch
	c, err := chaindb.LockChain(ctx, batch, id)
	ok(t, err)
	last := c.Cursor.Number + 5
	_, err = batch.Exec(ctx, "update chains set cursor_block = $2 where chain_id = $1", id, int64(last))
	ok(t, err)
	ok(t, batch.Commit(ctx))
	ok(t, <-added)

	var to uint64
	ok(t, db.Pool().QueryRow(ctx, "select to_block from gaps where chain_id = $1 and subject = $2", id,
		chaindb.HistorySubject+at.Hex()).Scan(&to))
	if to != last {
		t.Errorf("the gap of the treasury ends at block %d, want %d, the last that was indexed without it", to, last)
	}
	err = db.InTx(ctx, pgx.TxOptions{}, "another batch",
		func(tx pgx.Tx) error { return store.HoldLease(ctx, tx, lease) })
	if !errors.Is(err, repute.ErrFenced) {
		t.Errorf("another batch under the lease: %v", err)
	}
}
