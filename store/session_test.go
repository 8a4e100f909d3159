package store_test

import (
	"errors"
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// acquireSoon takes a lease as soon as it is free, and gives how long that took.
func acquireSoon(t *testing.T, db *store.DB, name string) time.Duration {
	t.Helper()
	ctx, since := ctxOf(t), time.Now()
	for {
		_, err := db.Acquire(ctx, name, "b", time.Hour)
		if err == nil {
			return time.Since(since)
		}
		if !errors.Is(err, repute.ErrHeld) {
			t.Fatal(err)
		}
		if time.Since(since) > time.Minute {
			t.Fatal("the lease is still held")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A dead process keeps its lease for no longer than its connection lasts.
func TestLeaseEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	db, url := testDBAt(t)
	dead, ctx := openDB(t, url), ctxOf(t)
	old, err := dead.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	ok(t, dead.Renew(ctx, old, time.Hour))
	if _, err := db.Acquire(ctx, "chain:1", "b", time.Hour); !errors.Is(err, repute.ErrHeld) {
		t.Fatalf("while its process lives: %v", err)
	}
	dead.Close()
	t.Logf("free after %s of an hour", acquireSoon(t, db, "chain:1"))
	if err := db.Renew(ctx, old, time.Hour); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("renew of the dead process's lease: %v", err)
	}
}

// A process whose session was ended by the server says with its next renewal that it
// lives.
func TestLeaseOutlivesALostSession(t *testing.T) {
	t.Parallel()
	db, url := testDBAt(t)
	other, ctx := openDB(t, url), ctxOf(t)
	l, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	var ended int
	ok(t, other.Pool().QueryRow(ctx, `select count(pg_terminate_backend(pid, 5000)) from pg_locks
		where locktype = 'advisory' and objsubid = 1 and database = (select oid from pg_database where datname =
			current_database())`).Scan(&ended))
	if ended != 1 {
		t.Fatalf("%d sessions vouch for the process, want 1", ended)
	}
	for kept, since := int64(0), time.Now(); kept == 0; time.Sleep(5 * time.Millisecond) {
		ok(t, db.Renew(ctx, l, time.Hour))
		ok(t, other.Pool().QueryRow(ctx, `select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1
			and database = (select oid from pg_database where datname = current_database())`).Scan(&kept))
		if time.Since(since) > time.Minute {
			t.Fatal("no session vouches for the process again")
		}
	}
	ok(t, db.Renew(ctx, l, time.Hour))
	if _, err := other.Acquire(ctx, "chain:1", "b", time.Hour); !errors.Is(err, repute.ErrHeld) {
		t.Errorf("while its process lives: %v", err)
	}
}

// Behind a pooler, whose connections outlive those of its clients, only the expiry counts.
func TestLeaseBehindAPooler(t *testing.T) {
	t.Parallel()
	db, url := testDBAt(t)
	_, through := newRelay(t, url, true)
	pooled, ctx := openDB(t, through), ctxOf(t)
	_, err := pooled.Acquire(ctx, "chain:1", "a", 1500*time.Millisecond)
	ok(t, err)
	var locks int
	ok(t, db.Pool().QueryRow(ctx, `select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1
		and database = (select oid from pg_database where datname = current_database())`).Scan(&locks))
	if locks != 0 {
		t.Errorf("%d locks are left to the pooler's connections", locks)
	}
	pooled.Close()
	if took := acquireSoon(t, db, "chain:1"); took < time.Second {
		t.Errorf("free after %s, before the lease expired", took)
	}
}

// A frozen leader has two transactions: one waits for the other. The next leader waits
// for neither.
func TestTakeoverEndsWhatWaitsForAFrozenBatch(t *testing.T) {
	t.Parallel()
	db, url := testDBAt(t)
	link, through := newRelay(t, url, false)
	frozen, ctx := openDB(t, through), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	a, err := frozen.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	l := smallChain()
	batch := batchOf(1, l.genesis, l.blocks)
	batch.Lease = a
	release := holdTable(t, db, "votes")
	done := make(chan error, 2)
	go func() { done <- eventdb.Apply(ctx, frozen, batch) }()
	waitBlockedBy(t, db, 1)
	go func() { done <- chaindb.SetHead(ctx, frozen, 1, a, chaindb.Head{Head: 99}) }()
	waitBlockedBy(t, db, 2)
	link.freeze()
	release()
	batch.Lease = takeOver(t, db, "chain:1")
	began := time.Now()
	ok(t, eventdb.Apply(ctx, db, batch))
	if took := time.Since(began); took > 7*time.Second {
		t.Errorf("the next leader waited %s for the frozen one", took)
	}
	link.thaw()
	for range 2 {
		if err := <-done; err == nil {
			t.Error("the frozen leader wrote something")
		}
	}
}
