package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/searchdb"
)

// Readers that use up their connections leave the leader its lease.
func TestReadersCannotStarveTheLeader(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db, err := store.Open(ctxOf(t), url, store.Options{MaxConns: 1})
	ok(t, err)
	t.Cleanup(db.Close)
	ctx := ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	tx, err := db.Pool().Begin(ctx)
	ok(t, err)
	_, err = tx.Exec(ctx, "lock table agents in access exclusive mode")
	ok(t, err)
	list := func() error {
		_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1})
		return err
	}
	done := make(chan error, 1)
	go func() { done <- list() }()
	waitBlocked(t, db)
	if err := list(); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("a reader without a connection: %v", err)
	}
	ok(t, db.Renew(ctx, l, time.Hour))
	ok(t, tx.Rollback(ctx))
	ok(t, <-done)
}

func TestMigrateWithOneConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	ok(t, store.Migrate(ctxOf(t), url+separator+"pool_max_conns=1"))
}

func TestUnknownHeadsKeepWhatIsStored(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, chaindb.SetHead(ctx, db, 1, store.Lease{},
		chaindb.Head{Head: 16, Safe: 15, Finalized: 14, SeenAt: time.Now()}))
	ok(t, chaindb.SetHead(ctx, db, 1, store.Lease{}, chaindb.Head{Head: 17, SeenAt: time.Now()}))
	var safe, finalized uint64
	ok(t, db.Pool().QueryRow(ctx, "select safe_block, finalized_block from chains").Scan(&safe, &finalized))
	if safe != 15 || finalized != 14 {
		t.Errorf("safe %d, finalized %d", safe, finalized)
	}
}
