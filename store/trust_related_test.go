package store_test

import (
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
)

// Saving the score of a bad agent makes nobody else stale: those of its party are marked in
// parts, by any process, and a run is not closed before.
func TestFollowGuiltInParts(t *testing.T) {
	t.Parallel()
	db, _ := followed(t, 7)
	ctx := t.Context()
	ok(t, scoredb.AddRun(ctx, db, scoredb.Run{ChainID: 7, Run: 2, Scorer: "test"}))
	markAll(t, db)
	claimed, err := scoredb.ClaimStale(ctx, db, 7, 2, false, 1, 0)
	ok(t, err)
	if len(claimed) != 1 {
		t.Fatalf("claimed %+v", claimed)
	}
	var owners [][]byte
	var want int // of the party, without the bad one
	ok(t, db.Pool().QueryRow(ctx,
		"select array_agg(distinct owner), count(distinct token_id) from agent_states where chain_id = 7").Scan(&owners,
		&want))
	if want--; want < 4 {
		t.Fatalf("%d agents: the test shows nothing", want)
	}
	party := func(common.Address) (list []common.Address) {
		for _, o := range owners {
			list = append(list, common.BytesToAddress(o))
		}
		return list
	}
	bad := claimed[0]
	score := &scoredb.AgentScore{Score: repute.Score{Status: repute.Unrated, Result: []byte("{}")},
		Penalties: []repute.Penalty{{TokenID: bad.TokenID, Score: -50000, High: -30000}}}
	_, err = db.Pool().Exec(ctx, "delete from trust_stale where token_id <> $1::text::numeric", bad.TokenID.Dec())
	ok(t, err)
	ok(t, scoredb.SaveScores(ctx, db, 7, 2, []scoredb.ScoredAgent{{StaleAgent: bad, Current: score, Last: score}},
		scoredb.Identities{Members: party}))
	if n := stale(t, db); n != 0 {
		t.Errorf("%d agents were made stale with the score", n)
	}
	if closed, err := scoredb.CloseRun(ctx, db, 7); closed || err != nil {
		t.Errorf("closed %v, %v before the others were marked", closed, err)
	}
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			for range 400 {
				if _, err := scoredb.MarkRelated(ctx, db, 7, 2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	var finals int
	ok(t, db.Pool().QueryRow(ctx, "select count(*) filter (where final) from trust_stale").Scan(&finals))
	if n := stale(t, db); n != want || finals != want {
		t.Errorf("%d agents are stale, %d as of the run, want %d", n, finals, want)
	}
	clear(t, db)
	if more, err := scoredb.MarkRelated(ctx, db, 7, 2); more || err != nil {
		t.Errorf("more %v, %v", more, err)
	}
	if closed, err := scoredb.CloseRun(ctx, db, 7); !closed || err != nil {
		t.Errorf("closed %v, %v", closed, err)
	}
}

// Guilt that stays as it is has only those followed to which something happened since.
func TestFollowGuiltThatStays(t *testing.T) {
	t.Parallel()
	db, _ := followed(t, 7)
	ctx := t.Context()
	who := scoredb.Identities{Members: func(a common.Address) []common.Address { return []common.Address{a} }}
	save := func(run uint64, score repute.Points) (rows, changed int) {
		ok(t, scoredb.AddRun(ctx, db, scoredb.Run{ChainID: 7, Run: run, Boundary: run * 10, Scorer: "test"}))
		markAll(t, db)
		claimed, err := scoredb.ClaimStale(ctx, db, 7, run, false, 1, 0)
		ok(t, err)
		bad := &scoredb.AgentScore{Score: repute.Score{Status: repute.Unrated, Result: []byte("{}")},
			Penalties: []repute.Penalty{{TokenID: claimed[0].TokenID, Score: score, High: score}}}
		ok(t, scoredb.SaveScores(ctx, db, 7, run,
			[]scoredb.ScoredAgent{{StaleAgent: claimed[0], Current: bad, Last: bad}},
			who))
		ok(t, db.Pool().QueryRow(ctx,
			"select count(*), count(*) filter (where updated = -1) from trust_related").Scan(&rows, &changed))
		for more := true; more; {
			more, err = scoredb.MarkRelated(ctx, db, 7, 100)
			ok(t, err)
		}
		clear(t, db)
		if closed, err := scoredb.CloseRun(ctx, db, 7); !closed || err != nil {
			t.Fatalf("closed %v, %v", closed, err)
		}
		return rows, changed
	}
	for i, c := range []struct {
		score         repute.Points
		rows, changed int
	}{{-50_000, 2, 2}, {-50_000, 1, 0}, {-40_000, 2, 2}} {
		if rows, changed := save(uint64(2+i), c.score); rows != c.rows || changed != c.changed {
			t.Errorf("guilt %d: %d to follow, %d of them wholly, want %d and %d", c.score, rows, changed, c.rows,
				c.changed)
		}
	}
}
