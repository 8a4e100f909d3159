package engine_test

import (
	"errors"
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
)

// Opinions fade while nothing happens on their chain: an epoch is of the time of its last
// block, not of the newest event.
func TestQuietChainAges(t *testing.T) {
	t.Parallel()
	l, db := scene(t, 60)
	before := newest(t, db, 2)
	l.later += 90 * 24 * time.Hour
	l.pad(75)
	l.store(t, db, 75)
	run := settle(t, db, 9, 70)
	if end := l.blocks[69].Block; run.Block.Number != 70 || run.Block.Hash != end.Hash ||
		!run.Block.Time.Equal(end.Time) {
		t.Errorf("the epoch is of %+v, want %+v", run.Block, end)
	}
	after := newest(t, db, 2)
	if after.Mean > before.Mean*4/5 || after.Confidence >= before.Confidence ||
		!after.Block.Time.Equal(run.Block.Time) {
		t.Errorf("mean %s with confidence %d at %v, three months before %s with %d", after.Mean, after.Confidence,
			after.Block.Time, before.Mean, before.Confidence)
	}
	replayAll(t, db)
}

// Where the header of an epoch's last block comes late the epoch is scored again, once.
func TestHeaderOfAnEpochComesLate(t *testing.T) {
	t.Parallel()
	l, db, stop := played(t, 60)
	stop()
	l.later += 90 * 24 * time.Hour
	l.pad(75)
	l.store(t, db, 75)
	_, err := db.Pool().Exec(t.Context(), "delete from blocks where number = 70") // as if it had never been asked for
	ok(t, err)
	start(t, db)
	first := settle(t, db, 9, 70)
	if first.Block.Number >= 70 {
		t.Fatalf("the first run is of %+v", first.Block)
	}
	for _, lie := range []time.Time{{}, time.Unix(1, 0), l.blocks[74].Time.Add(time.Second)} {
		b := l.blocks[69].Block
		b.Time = lie
		if err := scoredb.KeepHeader(t.Context(), db, 9, store.Lease{}, b); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("a header of %v: %v", lie, err)
		}
	}
	ok(t, scoredb.KeepHeader(t.Context(), db, 9, store.Lease{}, l.blocks[69].Block))
	await(t, "another run", func() bool {
		r, err := scoredb.ReadRun(t.Context(), db, 9, 0)
		ok(t, err)
		return r.Run > first.Run && !r.Closed.IsZero()
	})
	again := settle(t, db, 9, 70)
	if again.Run != first.Run+1 || again.Block.Number != 70 {
		t.Errorf("run %d of block %d, want run %d of block 70", again.Run, again.Block.Number, first.Run+1)
	}
	last, _, err := query.ScoreOf(t.Context(), db, newest(t, db, 2).Agent, repute.At{Finality: repute.Finalized})
	ok(t, err)
	if !last.Block.Time.Equal(l.blocks[69].Time) {
		t.Errorf("the final score is of %v", last.Block.Time)
	}
	replayAll(t, db)
}
