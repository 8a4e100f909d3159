package engine_test

import (
	"errors"
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/trust/explain"
	"repute/trust/replay"
)

// prune does a whole pass over final scores and inputs, as if all inputs were old.
func prune(t *testing.T, db *store.DB, finals time.Duration) {
	t.Helper()
	for _, sql := range []string{"update cursors set due = now()",
		"update trust_inputs set kept_at = kept_at - interval '2 days'"} {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	for more := true; more; {
		var err error
		more, err = scoredb.PruneFinals(t.Context(), db, finals)
		ok(t, err)
	}
	for more := true; more; {
		var err error
		more, err = scoredb.PruneInputs(t.Context(), db)
		ok(t, err)
	}
}

func inputs(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	ok(t, db.Pool().QueryRow(t.Context(), "select count(*) from trust_inputs").Scan(&n))
	return n
}

// Final scores that another one replaced long ago are forgotten, and what only they follow
// from; who asks for one hears that. All others are made again as before.
func TestOldFinalsArePruned(t *testing.T) {
	t.Parallel()
	l, db := scene(t, 60)
	for i, block := range []uint64{70, 80} {
		s := l.state()
		l.mine(s, s.rate(1, person(5), 91))
		pay(t, db, 1, person(i), 100)
		l.pad(int(block))
		l.store(t, db, block)
		settle(t, db, 9, block)
	}
	_, err := db.Pool().Exec(t.Context(),
		"update trust_runs set closed_at = closed_at - interval '300 days' where boundary <= 70")
	ok(t, err)
	before := inputs(t, db)
	prune(t, db, 0)
	if _, err := replayed(t, db, 1, 60); err != nil {
		t.Errorf("pruned although all are kept: %v", err)
	}
	prune(t, db, 180*24*time.Hour)
	if n := inputs(t, db); n >= before {
		t.Errorf("%d inputs of %d are left", n, before)
	}
	var pruned *replay.PrunedError
	if s, err := replayed(t, db, 1, 60); !errors.As(err, &pruned) {
		t.Errorf("replayed %+v, %v", s, err)
	}
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	if _, err := r.Explain(t.Context(), newest(t, db, 1).Agent, repute.At{Block: 60}, nil); !errors.As(err, &pruned) {
		t.Errorf("explained what is pruned: %v", err)
	}
	view, err := query.ReadReputation(t.Context(), db, newest(t, db, 1).Agent,
		query.ReputationQuery{At: repute.At{Block: 60}})
	if ok(t, err); !view.Score.Pruned || view.Score.Status != repute.Unrated || view.Score.Low != -100_000 ||
		view.Counts.Feedback == 0 {
		t.Errorf("the rest is not told with what is pruned: %+v", view)
	}
	for _, block := range []uint64{70, 80} {
		if s, err := replayed(t, db, 1, block); err != nil || s.Block.Number != block {
			t.Errorf("as of block %d: %+v, %v", block, s, err)
		}
	}
	replayAll(t, db)
}

// An engine whose manifest was pruned stores it again, though it stored it once.
func TestPrunedManifestComesBack(t *testing.T) {
	t.Parallel()
	_, db := scene(t, 60)
	start(t, db) // a second engine shares the work
	has := func(want bool, usd int64) repute.Score {
		t.Helper()
		before := newest(t, db, 1)
		pay(t, db, 1, person(0), usd)
		await(t, "the payment counts", func() bool { return newest(t, db, 1).Evidence != before.Evidence })
		if _, err := scoredb.ReadInput(t.Context(), db, before.Evidence); (err == nil) != want {
			t.Errorf("the manifest from before %d dollars: %v", usd, err)
		}
		return newest(t, db, 1)
	}
	none := newest(t, db, 1)
	paid := has(true, 100)
	has(true, 0)
	prune(t, db, 0)
	if _, err := scoredb.ReadInput(t.Context(), db, paid.Evidence); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("a manifest that nothing names: %v", err)
	}
	again := has(true, 100)
	if none.Evidence == paid.Evidence || again.Evidence != paid.Evidence {
		t.Errorf("evidence %s, then %s, then %s", none.Evidence, paid.Evidence, again.Evidence)
	}
	if _, err := scoredb.ReadInput(t.Context(), db, again.Evidence); err != nil {
		t.Errorf("the manifest of a score: %v", err)
	}
	replayAll(t, db)
}
