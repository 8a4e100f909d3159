package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// A row that commits behind one already committed must not be missed: while a
// write of chain 1 is open, what chain 2 committed meanwhile stays hidden.
func TestReaderMissesNothingThatCommitsLate(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, chaindb.AddChain(ctx, db, testChain(2)))
	l := smallChain()
	ok(t, eventdb.Apply(ctx, db, batchOf(2, l.genesis, l.blocks[:1])))
	seen := readChanges(t, ctx, db, "")
	since := seen[len(seen)-1].Cursor

	// The write of chain 1 stands still after it has got its transaction id.
	release := holdTable(t, db, "votes")
	done := make(chan error, 1)
	go func() { done <- eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)) }()
	waitBlocked(t, db)
	ok(t, eventdb.Apply(ctx, db, batchOf(2, l.blocks[0].Block, l.blocks[1:2])))
	early, err := db.Changes(ctx, since, 100)
	ok(t, err)
	if len(early) != 0 {
		t.Errorf("read %d rows past an open write", len(early))
	}
	release()
	ok(t, <-done)
	chains := map[uint64]int{}
	for _, c := range readChanges(t, ctx, db, since) {
		chains[c.ChainID]++
	}
	if chains[1] == 0 || chains[2] == 0 {
		t.Errorf("rows by chain: %v", chains)
	}
}

func TestChangeCursors(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	for _, bad := range []string{"x", "1", "1-", "-1-1", "1-2-3", "01-1", "1-99999999999999999999", "1 -1"} {
		if _, err := db.Changes(ctx, bad, 1); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := db.Changes(ctx, "1-1", 1); !errors.Is(err, repute.ErrGone) {
		t.Errorf("a row that never was: %v", err)
	}
}

func TestPrunedChangesAreGone(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	if n, err := db.PruneChanges(ctx, 0); n != 0 || err != nil {
		t.Errorf("pruned %d of nothing: %v", n, err)
	}
	l := smallChain()
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	all := readChanges(t, ctx, db, "")
	if n, err := db.PruneChanges(ctx, time.Hour); n != 0 || err != nil {
		t.Errorf("pruned %d young rows: %v", n, err)
	}
	_, err := db.Pool().Exec(ctx, `update changes set created_at = now() - interval '2 hours' where seq <= 2 or seq = 4`)
	ok(t, err)
	if n, err := db.PruneChanges(ctx, time.Hour); n != 2 || err != nil {
		t.Errorf("pruned %d, not the two at the end: %v", n, err)
	}
	_, err = db.Changes(ctx, all[1].Cursor, 100)
	if !errors.Is(err, repute.ErrGone) || !strings.Contains(err.Error(), all[2].Cursor) {
		t.Errorf("pruned cursor: %v", err)
	}
	rest, err := db.Changes(ctx, all[2].Cursor, 100)
	if err != nil || len(rest) != len(all)-3 {
		t.Errorf("%d rows behind a kept cursor: %v", len(rest), err)
	}
	if n, err := db.PruneChanges(ctx, -time.Hour); int(n) != len(all)-3 || err != nil {
		t.Errorf("pruned %d of %d: %v", n, len(all)-2, err)
	}
	newest := all[len(all)-1].Cursor
	if rest, err := db.Changes(ctx, newest, 100); err != nil || len(rest) != 0 {
		t.Errorf("a reader at the newest row: %d rows, %v", len(rest), err)
	}
}

func TestBackfillIsOneChange(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l := smallChain()
	b := batchOf(1, l.genesis, l.blocks)
	b.Backfill = true
	ok(t, eventdb.Apply(ctx, db, b))
	all := readChanges(t, ctx, db, "")
	if len(all) != 1 || all[0].Kind != "backfilled" || string(all[0].Data) != `{"to": 12, "from": 10}` {
		t.Fatalf("changes %+v", all)
	}
	// A rewind into the range takes it back and announces what is left of it.
	l.fork(10)
	ok(t, eventdb.Rewind(ctx, db, l.head(), batchOf(1, l.head(), nil)))
	kinds := map[string]store.Change{}
	for _, c := range readChanges(t, ctx, db, all[0].Cursor) {
		kinds[c.Kind] = c
	}
	if len(kinds) != 3 || kinds["retracted"].Retracts != all[0].Cursor ||
		string(kinds["backfilled"].Data) != `{"to": 10, "from": 10}` ||
		kinds["rewound"].Block != 10 {
		t.Errorf("changes %+v", kinds)
	}
}

func TestLongTextIsCutInChanges(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	long := strings.Repeat("ä", 50_000)
	l := chainOf(txOf{
		repute.Transfer{To: rpctest.Account(1), TokenID: token(0)},
		repute.MetadataSet{TokenID: token(0), Key: long, Value: []byte(long)},
	})
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	all := readChanges(t, ctx, db, "")
	data := string(all[1].Data)
	if len(data) > 60_000 || !strings.Contains(data, `"size": 100000`) || !strings.Contains(data, `"text": "ää`) {
		t.Errorf("%d bytes: %.200s", len(data), data)
	}
}
