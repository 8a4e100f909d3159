package engine_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/trust/engine"
)

// allStale marks all agents instead of beginning a pass.
func allStale(t *testing.T, db *store.DB) {
	t.Helper()
	for _, sql := range []string{"update trust_runs set scored_to = null",
		"insert into trust_stale (chain_id, token_id, cause, final) select chain_id, token_id, 1, true from agents where feedback > 0"} {
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
}

// Two workers that score an agent, of which the later finds it innocent, leave no guilt.
func TestInnocenceIsNotLost(t *testing.T) {
	t.Parallel()
	l, db := caught(t)
	l.pad(60)
	l.store(t, db, 60)
	ctx := t.Context()
	ok(t, scoredb.AddRun(ctx, db, scoredb.Run{ChainID: 9, Run: 1, Scorer: "test"}))
	allStale(t, db)
	claimed, err := scoredb.ClaimStale(ctx, db, 9, 1, false, 10, time.Minute)
	ok(t, err)
	var mine scoredb.StaleAgent
	for _, c := range claimed {
		if c.TokenID == token(0) {
			mine = c
		}
	}
	if mine.Mark == 0 {
		t.Fatalf("claimed %+v", claimed)
	}
	other, err := db.Pool().Begin(ctx) // one that claimed it before it was marked again, about to commit
	ok(t, err)
	for _, as := range []string{"select from trust_stale where chain_id = 9 and token_id = 0 for update",
		`insert into trust_penalties (chain_id, final, token_id, identity, owner, score, high, tier, run) values (9, false, 0, '\x08', '\x08', -50000, -30000, 0, 1)`} {
		_, err := other.Exec(ctx, as)
		ok(t, err)
	}
	done := make(chan error, 1)
	go func() {
		none := &scoredb.AgentScore{Score: repute.Score{Status: repute.Unrated, Result: []byte("{}")}}
		done <- scoredb.SaveScores(ctx, db, 9, 1, []scoredb.ScoredAgent{{StaleAgent: mine, Current: none, Last: none}},
			scoredb.Identities{Members: func(a common.Address) []common.Address { return []common.Address{a} }})
	}()
	await(t, "the other waits", func() bool {
		var n int
		ok(t, db.Pool().QueryRow(ctx,
			"select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0").Scan(&n))
		return n > 0
	})
	ok(t, other.Commit(ctx))
	ok(t, <-done)
	rows, err := db.Pool().Query(ctx,
		"select score from trust_penalties where chain_id = 9 and token_id = 0 and not final")
	ok(t, err)
	left, err := pgx.CollectRows(rows, pgx.RowTo[int])
	ok(t, err)
	if len(left) > 0 {
		t.Errorf("guilt of an agent whose newest score has none: %v", left)
	}
}

// What a closed run said stays, whatever is found late: a new run says it anew.
func TestClosedFinalsStay(t *testing.T) {
	t.Parallel()
	_, db := withCard(t, 5)
	publish(t, db, "own", person(9), 0)
	stop := start(t, db)
	run := settle(t, db, 9, 20)
	final := func() (line string) {
		ok(t, db.Pool().QueryRow(t.Context(),
			"select trust_finals::text from trust_finals where token_id = 0 and run = $1",
			run.Run).Scan(&line))
		return line
	}
	before := final()
	stop()
	publish(t, db, "turned", person(7), 0)
	_, err := db.Pool().Exec(t.Context(), "insert into trust_marks (chain_id, late, every) values (9, true, true)")
	ok(t, err)
	start(t, db)
	await(t, "another run is closed", func() bool {
		again, err := scoredb.ReadClosedRun(t.Context(), db, 9)
		ok(t, err)
		return again.Run > run.Run
	})
	if after := final(); after != before {
		t.Errorf("a final score of the closed run %d\n%s\nbecame\n%s", run.Run, before, after)
	}
	after, _, err := query.ScoreOf(t.Context(), db, repute.AgentID{ChainID: 9, TokenID: token(0)}, repute.At{Block: 20})
	ok(t, err)
	if after.Run == run.Run || lacking(t, after) == "nothing" {
		t.Errorf("the final score is of run %d and lacks %s", after.Run, lacking(t, after))
	}
}

// Whether an agent has a final score at a block does not depend on what came after it.
func TestFinalsAreOfTheirBlock(t *testing.T) {
	t.Parallel()
	l, one := caught(t)
	s := l.state()
	l.mine(s, s.mint(person(16))...) // 3, not judged
	l.pad(60)
	l.run(t, one)
	two, _ := l.fresh(t)
	s = l.state()
	l.mine(s, s.rate(3, person(0), 90)) // block 61
	l.store(t, two, 60)
	start(t, two)
	settle(t, two, 9, 60)
	l.store(t, one, 60)
	settle(t, one, 9, 60)
	for what, db := range map[string]*store.DB{"before": one, "after": two} {
		if s, _, err := query.ScoreOf(t.Context(), db, repute.AgentID{ChainID: 9, TokenID: token(3)},
			repute.At{Block: 60}); s.Run != 0 {
			t.Errorf("an agent that nobody judged up to block 60 has a final score there of a run %s block 61 was seen: %+v, %v", what, s, err)
		}
	}
	sameFinals(t, l, one, two, 60)
}

// What a guilty party has is not written anew at each epoch because the bad one's score aged.
func TestGuardedAgentsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	l, db := caught(t)
	s := l.state()
	var events []repute.Event
	for range 30 {
		events = append(events, s.mint(person(8))...)
	}
	l.mine(s, events...)
	l.pad(60)
	l.store(t, db, 60)
	startWith(t, db, engine.EngineOptions{})
	settle(t, db, 9, 60)
	if !limited(t, db, 3) {
		t.Fatal("agent 3 is not limited")
	}
	finals := func() (n int) {
		ok(t, db.Pool().QueryRow(t.Context(), "select count(*) from trust_finals where token_id >= 3").Scan(&n))
		return n
	}
	had, before := finals(), written(t, db)
	for to := 70; to <= 90; to += 10 {
		l.later += 5 * time.Minute
		l.pad(to)
		l.store(t, db, uint64(to))
		settle(t, db, 9, uint64(to))
	}
	if has := finals(); had != 30 || has != had || changed(before, written(t, db)) > 0 {
		t.Errorf("three quiet epochs: %d final rows became %d, %d of %d newest rows were written", had, has,
			changed(before, written(t, db)), len(before))
	}
}
