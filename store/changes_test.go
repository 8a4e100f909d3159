package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
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
	early, _, err := db.Changes(ctx, since, 100, store.ChangeFilter{})
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
		if _, _, err := db.Changes(ctx, bad, 1, store.ChangeFilter{}); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, _, err := db.Changes(ctx, "1-1", 1, store.ChangeFilter{}); !errors.Is(err, repute.ErrGone) {
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
	_, err := db.Pool().Exec(ctx,
		`update changes set created_at = now() - interval '2 hours' where seq <= 2 or seq = 4`)
	ok(t, err)
	if n, err := db.PruneChanges(ctx, time.Hour); n != 2 || err != nil {
		t.Errorf("pruned %d, not the two at the end: %v", n, err)
	}
	_, _, err = db.Changes(ctx, all[1].Cursor, 100, store.ChangeFilter{})
	if !errors.Is(err, repute.ErrGone) || !strings.Contains(err.Error(), all[2].Cursor) {
		t.Errorf("pruned cursor: %v", err)
	}
	rest, _, err := db.Changes(ctx, all[2].Cursor, 100, store.ChangeFilter{})
	if err != nil || len(rest) != len(all)-3 {
		t.Errorf("%d rows behind a kept cursor: %v", len(rest), err)
	}
	if n, err := db.PruneChanges(ctx, -time.Hour); int(n) != len(all)-3 || err != nil {
		t.Errorf("pruned %d of %d: %v", n, len(all)-2, err)
	}
	newest := all[len(all)-1].Cursor
	if rest, _, err := db.Changes(ctx, newest, 100, store.ChangeFilter{}); err != nil || len(rest) != 0 {
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

// A filter selects changes and moves past all others, however the pages divide them.
func TestFilteredChanges(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	for chain := range uint64(2) {
		ok(t, chaindb.AddChain(ctx, db, testChain(chain+1)))
		l := smallChain()
		ok(t, eventdb.Apply(ctx, db, batchOf(chain+1, l.genesis, l.blocks)))
	}
	all := readChanges(t, ctx, db, "")
	one := token(0)
	for _, f := range []store.ChangeFilter{{ChainID: 2}, {ChainID: 1, TokenID: &one},
		{Kinds: []string{"feedback.given"}},
		{Kinds: []string{"agent.uri", "feedback.given"}, ChainID: 1}, {ChainID: 3}} {
		var want, got []string
		for _, c := range all {
			if f.Selects(&c) {
				want = append(want, c.Cursor)
			}
		}
		since := ""
		for {
			list, next, err := db.Changes(ctx, since, 2, f)
			ok(t, err)
			for _, c := range list {
				got = append(got, c.Cursor)
			}
			if next == since {
				break
			}
			since = next
		}
		if !slices.Equal(got, want) || since != all[len(all)-1].Cursor {
			t.Errorf("%+v: %v, want %v; ends at %s", f, got, want, since)
		}
	}
}

// Final changes come in the order of the feed once their block is final, and nothing that a reorganization undid does.
func TestFinalChanges(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l := smallChain()
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	all := readChanges(t, ctx, db, "")
	final := func(block uint64) (list []store.Change) {
		t.Helper()
		_, err := db.Pool().Exec(ctx, "update chains set finalized_block = $1 where chain_id = 1", block)
		ok(t, err)
		list, _, err = db.Changes(ctx, "", 100, store.ChangeFilter{Final: true})
		ok(t, err)
		return list
	}
	for block := l.blocks[0].Number - 1; block <= l.head().Number; block++ {
		want := 0
		for _, c := range all {
			if c.Block <= block {
				want++
			}
		}
		if list := final(block); len(list) != want {
			t.Errorf("%d changes are final with block %d, want %d", len(list), block, want)
		}
	}
	from := l.blocks[1].Number
	_, err := db.Pool().Exec(ctx, "update chains set finalized_block = 0")
	ok(t, err)
	l.fork(from)
	ok(t, eventdb.Rewind(ctx, db, l.head(), batchOf(1, l.head(), nil)))
	for _, c := range final(from + 100) {
		if c.Block > l.head().Number || c.Kind == changedata.KindRetracted || c.Kind == changedata.KindRewound {
			t.Errorf("%s of block %d is final after a rewind to %d", c.Kind, c.Block, l.head().Number)
		}
	}
}
