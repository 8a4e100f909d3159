package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/importdb"
)

func TestLease(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	first, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	if _, err := db.Acquire(ctx, "chain:1", "b", time.Hour); !errors.Is(err, repute.ErrHeld) {
		t.Fatalf("second owner: %v", err)
	}
	if _, err := db.Acquire(ctx, "chain:2", "b", time.Hour); err != nil {
		t.Fatalf("other lease: %v", err)
	}
	again, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	if again.Epoch != first.Epoch+1 {
		t.Errorf("epoch %d after %d", again.Epoch, first.Epoch)
	}
	if err := db.Renew(ctx, first, time.Hour); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("renew under an old epoch: %v", err)
	}
	ok(t, db.Renew(ctx, again, time.Hour))
	ok(t, db.Release(ctx, again))
	next, err := db.Acquire(ctx, "chain:1", "b", time.Hour)
	ok(t, err)
	if next.Epoch <= again.Epoch {
		t.Errorf("epoch %d after %d", next.Epoch, again.Epoch)
	}
	ok(t, db.Release(ctx, again)) // no longer ours: nothing happens
	ok(t, db.Renew(ctx, next, time.Hour))
}

// takeOver makes b the leader after a's lease has run out.
func takeOver(t *testing.T, db *store.DB, name string) store.Lease {
	t.Helper()
	ctx := ctxOf(t)
	_, err := db.Pool().Exec(ctx,
		`update leases set expires_at = clock_timestamp() - interval '1 second' where name = $1`, name)
	ok(t, err)
	l, err := db.Acquire(ctx, name, "b", time.Hour)
	ok(t, err)
	return l
}

func TestFormerLeaderIsFenced(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	a, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	l := smallChain()
	first, rest := batchOf(1, l.genesis, l.blocks[:1]), batchOf(1, l.blocks[0].Block, l.blocks[1:])
	first.Lease, rest.Lease = a, a
	ok(t, eventdb.Apply(ctx, db, first))
	b := takeOver(t, db, "chain:1")
	before := dump(t, ctx, db, 1)
	_, repairErr := importdb.Repair(ctx, db, 1, a, nil, nil)
	for what, err := range map[string]error{
		"apply": eventdb.Apply(ctx, db, rest), "rewind": eventdb.Rewind(ctx, db, rest.Parent, rest),
		"renew": db.Renew(ctx, a, time.Hour),
		"head":  chaindb.SetHead(ctx, db, 1, a, chaindb.Head{Head: 99}), "repair": repairErr,
		"error": chaindb.SetError(ctx, db, 1, a, "not the leader", false),
	} {
		if !errors.Is(err, repute.ErrFenced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	equalDumps(t, "fenced writes", before, dump(t, ctx, db, 1))
	rest.Lease = b
	ok(t, eventdb.Apply(ctx, db, rest))
	if err := eventdb.Apply(ctx, db, rest); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("the same batch again: %v", err)
	}
}

// TestKeepRenewed: a lease is renewed until it is lost, or until its holder ends.
func TestKeepRenewed(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	a, err := db.Acquire(ctx, "kept", "a", time.Hour)
	ok(t, err)
	const ttl = 4 * time.Second // long enough for a busy machine to renew in time
	holding, end := context.WithCancel(ctx)
	kept := make(chan error, 1)
	go func() { kept <- db.KeepRenewed(holding, a, ttl) }()
	end()
	if err := <-kept; err != nil {
		t.Errorf("the holder ended: %v", err)
	}
	go func() { kept <- db.KeepRenewed(ctx, a, ttl) }()
	for until := time.Now().Add(time.Minute); ; {
		var renewed bool // to the short time that it is kept for
		ok(t, db.Pool().QueryRow(ctx, `select expires_at < clock_timestamp() + interval '1 minute' from leases
			where name = 'kept'`).Scan(&renewed))
		if renewed {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it was not renewed")
		}
	}
	ok(t, db.InTx(ctx, pgx.TxOptions{}, "revoke", func(tx pgx.Tx) error { return store.RevokeLease(ctx, tx, "kept") }))
	if err := <-kept; !errors.Is(err, repute.ErrFenced) {
		t.Errorf("the lease was lost: %v", err)
	}
}

// A lease that runs out while the batch is being written fences it too.
func TestLeaseIsCheckedAtTheEnd(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	a, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	l := smallChain()
	b := batchOf(1, l.genesis, l.blocks)
	b.Lease = a
	release := holdTable(t, db, "votes")
	done := make(chan error, 1)
	go func() { done <- eventdb.Apply(ctx, db, b) }()
	waitBlocked(t, db)
	_, err = db.Pool().Exec(ctx, `update leases set expires_at = clock_timestamp() - interval '1 second'`)
	ok(t, err)
	release()
	if err := <-done; !errors.Is(err, repute.ErrFenced) {
		t.Errorf("apply: %v", err)
	}
	if d := dump(t, ctx, db, 1); d != "" {
		t.Errorf("stored: %s", d)
	}
}

// A leader frozen in the middle of a batch keeps its transaction open; the next
// leader ends it and writes at once.
func TestTakeoverEndsAFrozenBatch(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	a, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	l := smallChain()
	batch := batchOf(1, l.genesis, l.blocks)
	batch.Lease = a
	release := holdTable(t, db, "votes")
	done := make(chan error, 1)
	go func() { done <- eventdb.Apply(ctx, db, batch) }()
	waitBlocked(t, db)
	batch.Lease = takeOver(t, db, "chain:1")
	if err := <-done; !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("the frozen batch: %v", err)
	}
	release()
	ok(t, eventdb.Apply(ctx, db, batch))
}
