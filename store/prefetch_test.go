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
)

// twoBatches are a chain's first block and its others.
func twoBatches(l *ledger, lease store.Lease) (first, rest eventdb.Batch) {
	first, rest = batchOf(1, l.genesis, l.blocks[:1]), batchOf(1, l.blocks[0].Block, l.blocks[1:])
	first.Lease, rest.Lease = lease, lease
	return first, rest
}

// waitAhead waits until some transaction of the database has stored and idles.
func waitAhead(t *testing.T, db *store.DB) {
	t.Helper()
	waitAheads(t, db, 1, "events")
}

// waitAheads waits until n transactions of the database have stored and idle. last is the table that they store last.
func waitAheads(t *testing.T, db *store.DB, n int, last string) {
	t.Helper()
	for ctx := ctxOf(t); ; time.Sleep(time.Millisecond) {
		var open int
		ok(t, db.Pool().QueryRow(ctx, `select count(*) from pg_stat_activity
			where datname = current_database() and state = 'idle in transaction' and query like $1`, "copy "+last+"%").Scan(&open))
		if open >= n {
			return
		}
	}
}

// What is stored ahead of its turn is seen by nobody before Apply, and then the
// same as what is not.
func TestAheadIsTheSameBatch(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	l := smallChain()
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, chaindb.AddChain(ctx, db, testChain(2)))
	ok(t, eventdb.Apply(ctx, db, batchOf(2, l.genesis, l.blocks)))
	want := dump(t, ctx, db, 2)

	first, rest := twoBatches(l, store.Lease{})
	rest.Prefetched = eventdb.Prefetch(ctx, db, rest, nil)
	waitAhead(t, db)
	if got := dump(t, ctx, db, 1); got != "" {
		t.Fatalf("visible before its turn: %s", got)
	}
	if err := eventdb.Apply(ctx, db, rest); !errors.Is(err, repute.ErrFenced) {
		t.Fatalf("applied before its turn: %v", err)
	}
	rest.Prefetched = eventdb.Prefetch(ctx, db, rest, nil)
	waitAhead(t, db)
	ok(t, eventdb.Apply(ctx, db, first))
	if rest.Prefetched == nil {
		t.Fatal("the place was not given back")
	}
	ok(t, eventdb.Apply(ctx, db, rest))
	equalDumps(t, "ahead", want, dump(t, ctx, db, 1))
}

// A guess that was wrong, or whose transaction died, costs nothing but time.
func TestAheadThatIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, db *store.DB, a *eventdb.Prefetched, rest *eventdb.Batch){
		"discarded": func(_ *testing.T, _ *store.DB, a *eventdb.Prefetched, _ *eventdb.Batch) { a.Discard() },
		"killed": func(t *testing.T, db *store.DB, _ *eventdb.Prefetched, _ *eventdb.Batch) {
			_, err := db.Pool().Exec(ctxOf(t), `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and state = 'idle in transaction'`)
			ok(t, err)
		},
		"of another batch": func(_ *testing.T, _ *store.DB, _ *eventdb.Prefetched, rest *eventdb.Batch) {
			rest.Records = append([]repute.Record{}, rest.Records...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := testDB(t), ctxOf(t)
			l := smallChain()
			ok(t, chaindb.AddChain(ctx, db, testChain(1)))
			first, rest := twoBatches(l, store.Lease{})
			rest.Prefetched = eventdb.Prefetch(ctx, db, rest, nil)
			waitAhead(t, db)
			ok(t, eventdb.Apply(ctx, db, first))
			lose(t, db, rest.Prefetched, &rest)
			ok(t, eventdb.Apply(ctx, db, rest))
			if got := len(rows(t, dump(t, ctx, db, 1), "events")); got != len(first.Records)+len(rest.Records) {
				t.Errorf("%d events", got)
			}
		})
	}
}

// Batches ahead of their turn are stored beside each other, under one lease too, and are
// applied in order.
func TestAheadBesideAhead(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	l := smallChain()
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	lease, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	first, second := batchOf(1, l.genesis, l.blocks[:1]), batchOf(1, l.blocks[0].Block, l.blocks[1:2])
	first.Lease, second.Lease = lease, lease
	first.Prefetched, second.Prefetched = eventdb.Prefetch(ctx, db, first, nil), eventdb.Prefetch(ctx, db, second, nil)
	waitAheads(t, db, 2, "events")
	ok(t, eventdb.Apply(ctx, db, first))
	ok(t, eventdb.Apply(ctx, db, second))
	if got := len(rows(t, dump(t, ctx, db, 1), "events")); got != len(first.Records)+len(second.Records) {
		t.Errorf("%d events", got)
	}
}

// A new leader does not wait for what a frozen one had begun ahead of its turn.
func TestTakingOverEndsWhatIsAhead(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	a, err := db.Acquire(ctx, "chain:1", "a", time.Hour)
	ok(t, err)
	first, rest := twoBatches(smallChain(), a)
	ok(t, eventdb.Apply(ctx, db, first))
	frozen := rest
	frozen.Prefetched = eventdb.Prefetch(ctx, db, frozen, nil)
	waitAhead(t, db)
	rest.Lease = takeOver(t, db, "chain:1")
	soon, cancel := context.WithTimeout(ctx, 8*time.Second) // idle transactions are ended after ten
	defer cancel()
	ok(t, eventdb.Apply(soon, db, rest))
	if err := eventdb.Apply(ctx, db, frozen); !errors.Is(err, repute.ErrFenced) {
		t.Errorf("the former leader: %v", err)
	}
}

// Transactions ahead of their turn leave connections for everything else, and do
// not keep a DB from closing.
func TestAheadIsBounded(t *testing.T) {
	t.Parallel()
	given, url := testDBAt(t)
	ctx := ctxOf(t)
	ok(t, chaindb.AddChain(ctx, given, testChain(1)))
	db := openDB(t, url)
	_, rest := twoBatches(smallChain(), store.Lease{})
	var open []*eventdb.Prefetched
	for a := eventdb.Prefetch(ctx, db, rest, nil); a != nil; a = eventdb.Prefetch(ctx, db, rest, nil) {
		open = append(open, a)
	}
	if len(open) != 2 {
		t.Fatalf("%d are open", len(open))
	}
	open[0].Discard()
	again := eventdb.Prefetch(ctx, db, rest, nil)
	if again == nil {
		t.Fatal("no place after one was given back")
	}
	db.Close()
	conn, err := pgx.Connect(ctx, url)
	ok(t, err)
	defer conn.Close(ctx)
	var left int
	ok(t, conn.QueryRow(ctx, "select count(*) from events").Scan(&left))
	if left != 0 {
		t.Errorf("%d events stayed", left)
	}
}
