package engine_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/trust"
	"repute/trust/engine"
	"repute/trust/explain"
)

// village is a ledger of agents that some rate, on which nothing happens after block 60.
func village(t *testing.T, agents int) (*ledger, *store.DB) {
	t.Helper()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	var events []repute.Event
	for i := range agents {
		events = append(events, s.mint(person(100+i))...)
		for j := range i % 7 {
			events = append(events, s.rate(uint64(i), person((i+j)%people), int64(60+(i*j)%40)))
		}
	}
	l.mine(s, events...)
	l.mine(s, s.rate(1, person(0), 11), s.rate(1, person(1), 12), s.rate(1, person(2), 13))
	l.pad(60)
	l.store(t, db, 60)
	return l, db
}

// written are the scores of which a row was written, by the transaction that did.
func written(t *testing.T, db *store.DB) map[string]string {
	t.Helper()
	rows, err := db.Pool().Query(t.Context(), "select token_id::text, xmin::text from trust_scores")
	ok(t, err)
	type row struct{ Token, By string }
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	ok(t, err)
	out := map[string]string{}
	for _, r := range list {
		out[r.Token] = r.By
	}
	return out
}

func changed(before, after map[string]string) (n int) {
	for token, by := range after {
		if before[token] != by {
			n++
		}
	}
	return n
}

// An epoch in which nothing changed but ages, and they by little, writes no score. What is
// kept is explained by the newest epoch, is within the tolerance of it, and follows when
// age has changed it by more.
func TestQuietEpochWritesNoScore(t *testing.T) {
	t.Parallel()
	const agents = 40
	l, db := village(t, agents)
	startWith(t, db, engine.EngineOptions{})
	first := settle(t, db, 9, 60)
	before := written(t, db)
	l.pad(70)
	l.store(t, db, 70)
	settle(t, db, 9, 70)
	after := written(t, db)
	t.Logf("%d of %d scores were written in a quiet epoch", changed(before, after), len(after))
	// agent 1 is surely bad: what others are held to is exact
	if n := changed(before, after); n > len(after)/20 || len(after) < agents*6/7 {
		t.Errorf("%d of %d scores were written", n, len(after))
	}
	kept := newest(t, db, 27)
	if kept.Run != first.Run || kept.Block.Number != 60 {
		t.Errorf("got %+v, want the score of run %d", kept, first.Run)
	}
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	a, err := r.Explain(t.Context(), kept.Agent, repute.At{Finality: repute.Latest}, nil)
	ok(t, err)
	far := a.Score.Score - a.Result.Score
	if !reflect.DeepEqual(a.Score, kept) || sumOf(a.Contributions) != kept.Score || far == 0 ||
		far >= scoredb.Tolerance || -far >= scoredb.Tolerance {
		t.Errorf("explained %+v (%s by the newest epoch, contributions of %s), stored %+v", a.Score, a.Result.Score,
			sumOf(a.Contributions), kept)
	}
	f, err := r.Explain(t.Context(), kept.Agent, repute.At{Finality: repute.Finalized}, nil)
	ok(t, err)
	final, _, err := query.ScoreOf(t.Context(), db, kept.Agent, repute.At{Finality: repute.Finalized})
	ok(t, err)
	if !reflect.DeepEqual(f.Score, final) || !final.Final || f.Result.Block != 70 ||
		sumOf(f.Contributions) != final.Score {
		t.Errorf("explained final %+v, stored %+v", f.Score, final)
	}
	l.later += 10 * 24 * time.Hour
	l.pad(80)
	l.store(t, db, 80)
	third := settle(t, db, 9, 80)
	if now := newest(t, db, 6); now.Run != third.Run || now.Score >= kept.Score {
		t.Errorf("ten days later: %+v, want less than %s of run %d", now, kept.Score, third.Run)
	}
	replayAll(t, db)
}

func sumOf(list []trust.Contribution) (sum repute.Points) {
	for _, c := range list {
		sum += c.Points
	}
	return sum
}

// A score that was kept is what somebody finds who meets the chain now, within the
// tolerance.
func TestKeptScoresAreNear(t *testing.T) {
	t.Parallel()
	l := newLedger(21)
	db, _ := l.fresh(t)
	startWith(t, db, engine.EngineOptions{})
	var final uint64
	for range 8 {
		l.later += time.Duration(l.rng.IntN(48)) * time.Hour
		l.grow(1 + l.rng.IntN(6))
		l.pad(len(l.blocks) + 6)
		final = l.tip().Number - 3
		l.store(t, db, final)
		settle(t, db, 9, final/10*10)
	}
	again, _ := l.fresh(t)
	l.store(t, again, final)
	start(t, again)
	settle(t, again, 9, final/10*10)
	far := func(x, y repute.Points) bool { return x-y >= scoredb.Tolerance || y-x >= scoredb.Tolerance }
	older := 0
	for i := range l.state().owners {
		got, _, err := query.ScoreOf(t.Context(), db, repute.AgentID{ChainID: 9, TokenID: token(uint64(i))},
			repute.At{Finality: repute.Latest})
		want, _, none := query.ScoreOf(t.Context(), again, repute.AgentID{ChainID: 9, TokenID: token(uint64(i))},
			repute.At{Finality: repute.Latest})
		if (err == nil) != (none == nil) || got.Status != want.Status || got.Tier != want.Tier ||
			got.Evidence != want.Evidence ||
			far(got.Score, want.Score) || far(got.Low, want.Low) || far(got.High, want.High) ||
			far(got.Mean, want.Mean) {
			t.Errorf("agent %d: %s, %v, want %s, %v", i, got.Result, err, want.Result, none)
		}
		if got.Run != 0 && got.Block.Number < final/10*10 {
			older++
		}
	}
	t.Logf("%d scores were kept from earlier epochs", older)
	replayAll(t, db)
}
