package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/store"
	"repute/store/importdb"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust/engine"
	"repute/trust/replay"
)

// praised is a settled ledger on which an engine runs.
func praised(t *testing.T) (*ledger, *store.DB) {
	t.Helper()
	l := newLedger(7)
	db, _ := l.fresh(t)
	l.grow(60)
	l.store(t, db, 60)
	start(t, db)
	settle(t, db, 9, 60)
	return l, db
}

// await polls until something holds, and tells how long that took.
func await(t *testing.T, what string, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > patience {
			t.Fatal(what + ": never")
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(began)
}

func newest(t *testing.T, db *store.DB, agent uint64) repute.Score {
	t.Helper()
	s, err := whenFree(t, func() (repute.Score, error) {
		s, _, err := query.ScoreOf(t.Context(), db, repute.AgentID{ChainID: 9, TokenID: token(agent)},
			repute.At{Finality: repute.Latest})
		return s, err
	})
	ok(t, err)
	return s
}

// A rating moves the provisional score at once, by the weights there are.
func TestRatingIsSeenWithoutARun(t *testing.T) {
	t.Parallel()
	l, db := praised(t)
	run, err := scoredb.ReadRun(t.Context(), db, 9, 0)
	ok(t, err)
	s := l.state()
	l.mine(s, s.rate(1, person(0), 0), s.rate(1, person(2), 0), s.rate(1, person(3), 0))
	l.store(t, db, 60)
	took := await(t, "the score follows the rating",
		func() bool { return newest(t, db, 1).Block.Number == l.tip().Number })
	t.Logf("seen after %v", took)
	score := newest(t, db, 1)
	if score.Final || score.Run != run.Run {
		t.Errorf("got %+v, want a provisional score of run %d", score, run.Run)
	}
	last, _, err := query.ScoreOf(t.Context(), db, score.Agent, repute.At{Finality: repute.Finalized})
	ok(t, err)
	if !last.Final || last.Block.Number > 60 || last.Mean <= score.Mean {
		t.Errorf("final %+v, provisional %+v: three bad ratings should show in one alone", last, score)
	}
}

// Roots that are changed count within the epoch, and one that expires by the chain's
// time from the next on.
func TestRootsMakeARun(t *testing.T) {
	t.Parallel()
	l, db := praised(t)
	before, err := scoredb.ReadRun(t.Context(), db, 9, 0)
	ok(t, err)
	expiry := l.tip().Time.Add(5 * time.Minute) // of block 65
	ok(t, rootdb.AddRoots(t.Context(), db, 9, repute.DefaultRoots,
		[]repute.TrustRoot{{Address: person(0), Weight: repute.RootUnit, Reason: "test", Expires: expiry}}, true))
	next := func(run uint64) (r scoredb.Run) {
		await(t, "another run", func() bool {
			r, err = scoredb.ReadRun(t.Context(), db, 9, 0)
			ok(t, err)
			return r.Run >= run && !r.Closed.IsZero()
		})
		return r
	}
	r := next(before.Run + 1)
	if r.Boundary != before.Boundary || r.Roots == before.Roots || r.Weights == before.Weights {
		t.Errorf("got %+v, want another run of block %d", r, before.Boundary)
	}
	l.grow(10)
	l.store(t, db, 70)
	if r = next(r.Run + 1); r.Boundary != 70 {
		t.Fatalf("got %+v, want one of block 70", r)
	}
	rows := dump(t, db, " now ")
	if n := strings.Count(strings.Join(rows, ""), `"status":"rated"`); n > 0 || len(rows) == 0 {
		t.Errorf("%d of %d agents are rated by a root that has expired", n, len(rows))
	}
}

// Ratings of an agent that never registered wait for it, and score nobody.
func TestRatingOfNobody(t *testing.T) {
	t.Parallel()
	l, db := praised(t)
	s := l.state()
	nobody := uint64(len(s.owners))
	l.mine(s, s.rate(nobody, person(0), 100), s.rate(1, person(0), 90))
	l.store(t, db, 60)
	await(t, "the block is scored", func() bool { return newest(t, db, 1).Block.Number == l.tip().Number })
	rows := dump(t, db, "")
	for _, row := range rows {
		var r struct{ Agent string }
		_, body, _ := strings.Cut(row, "{")
		ok(t, json.Unmarshal([]byte("{"+body), &r))
		if strings.HasSuffix(r.Agent, fmt.Sprint(":", nobody)) {
			t.Errorf("scored: %s", row)
		}
	}
}

// A chain that was imported has scores of its newest block, though no block of it is
// known to be final.
func TestImportedChainIsScored(t *testing.T) {
	t.Parallel()
	l := newLedger(7)
	db, _ := l.fresh(t)
	l.grow(60)
	l.store(t, db, 0)
	_, err := db.Pool().Exec(t.Context(), "update chains set imported = true where chain_id = 9")
	ok(t, err)
	start(t, db)
	settle(t, db, 9, 60)
	if s := newest(t, db, 1); s.Block.Number == 0 || s.Block.Number > l.tip().Number {
		t.Errorf("got %+v", s)
	}
}

// An engine that dies between any two of its steps leaves what the next one finishes.
func TestEngineDiesAnywhere(t *testing.T) {
	t.Parallel()
	l := newLedger(3)
	db, url := l.fresh(t)
	died := 0
	for step := range uint64(12) {
		l.grow(5)
		l.store(t, db, l.tip().Number)
		// Each is given a little more time than the one before it.
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(step)*7*time.Millisecond)
		e, err := engine.New(open(t, url), engine.EngineOptions{Params: shortEpochs(t), Poll: time.Millisecond,
			Exact: true})
		ok(t, err)
		ok(t, e.Run(ctx))
		died++
		cancel()
		_, err = db.Pool().Exec(t.Context(),
			"update trust_stale set claimed = '-infinity'") // a claim runs out in a minute
		ok(t, err)
	}
	start(t, db)
	settle(t, db, 9, 60)
	again, _ := l.fresh(t)
	l.store(t, again, l.tip().Number)
	start(t, again)
	settle(t, again, 9, 60)
	got, want := dump(t, db, " now "), dump(t, again, " now ")
	if len(want) < 5 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d engines died, and\n%s\nwant\n%s", died, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	replayAll(t, db)
}

// Parameters are refused that cannot be meant, by what is wrong in them.
func TestEngineRefusesParameters(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`{`: "params", `{"version": "x", "depth": 3}`: "depth",
		strings.Replace(string(shortEpochs(t)), `"blocks": 10`, `"blocks": 0`, 1): "epoch",
	} {
		_, err := engine.New(nil, engine.EngineOptions{Params: []byte(body)})
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%.40q: got %v, want an error that names %s", body, err, field)
		}
	}
}

// decode finds the event of a stored log.
func (l *ledger) decode(log types.Log) (repute.Event, error) {
	return l.blocks[log.BlockNumber-1].records[log.Index].Event, nil
}

// A log that is found late moves the weights that were found without it: the chain gets
// another run, and the scores are those of somebody who had it all along.
func TestLateLogMakesARun(t *testing.T) {
	t.Parallel()
	l, complete := newLedger(7), newLedger(7)
	db, url := l.fresh(t)
	l.grow(30)
	s := l.state()
	var ratings []repute.Event
	for agent := range s.owners {
		ratings = append(ratings, s.rate(uint64(agent), person(2), 100))
	}
	l.mine(s, ratings...)
	l.grow(29)
	complete.blocks = append(complete.blocks, l.blocks...)
	late := l.blocks[30].records
	l.blocks[30].records = nil
	l.store(t, db, 60)
	start(t, db)
	before := settle(t, db, 9, 60)
	repairer, err := store.Open(t.Context(), url, store.Options{MaxConns: 2, Decode: complete.decode})
	ok(t, err)
	defer repairer.Close()
	_, err = importdb.Repair(t.Context(), repairer, 9, store.Lease{}, late, nil)
	ok(t, err)
	await(t, "another run", func() bool {
		r, err := scoredb.ReadRun(t.Context(), db, 9, 0)
		ok(t, err)
		return r.Run > before.Run && !r.Closed.IsZero()
	})
	after := settle(t, db, 9, 60)
	again, _ := complete.fresh(t)
	complete.store(t, again, 60)
	start(t, again)
	if want := settle(t, again, 9, 60); after.Weights != want.Weights || after.Weights == before.Weights {
		t.Errorf("weights %s, before %s, want %s", after.Weights, before.Weights, want.Weights)
	}
	got, want := dump(t, db, " now "), dump(t, again, " now ")
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	replayAll(t, db)
}

// Parameters of an engine count though its first run of them failed.
func TestOwnParametersOutliveAnError(t *testing.T) {
	t.Parallel()
	_, db := scene(t, 60)
	before, err := scoredb.ReadRun(t.Context(), db, 9, 0)
	ok(t, err)
	other := []byte(strings.Replace(string(shortEpochs(t)), `"pool": 0.05`, `"pool": 0.04`, 1))
	steps, err := engine.NewSteps(db, other, 9)
	ok(t, err)
	exec := func(sql string) {
		t.Helper()
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	exec("alter table trust_runs add constraint broken check (run <= 1) not valid")
	if err := steps.Walk(t.Context()); err == nil {
		t.Fatal("a run was stored")
	}
	exec("alter table trust_runs drop constraint broken")
	ok(t, steps.Walk(t.Context()))
	after, err := scoredb.ReadRun(t.Context(), db, 9, 0)
	ok(t, err)
	if after.Params != replay.HashInput(other) || after.Run != before.Run+1 {
		t.Errorf("run %d of parameters %s, want one of the engine's own, %s", after.Run, after.Params,
			replay.HashInput(other))
	}
}

// An engine that is late with the scores of a run does not change those of the next one.
func TestLateScoresOfAnOlderRun(t *testing.T) {
	t.Parallel()
	l := newLedger(7)
	db, _ := l.fresh(t)
	l.grow(60)
	l.store(t, db, 60)
	stop := start(t, db)
	run := settle(t, db, 9, 60)
	stop()
	run.Run++
	ok(t, scoredb.AddRun(t.Context(), db, run))
	allStale(t, db)
	claimed, err := scoredb.ClaimStale(t.Context(), db, 9, run.Run, false, 10, time.Minute)
	ok(t, err)
	run.Run++
	ok(t, scoredb.AddRun(t.Context(), db, run))
	late := make([]scoredb.ScoredAgent, len(claimed))
	for i, a := range claimed {
		late[i].StaleAgent = a // as if nobody had rated them
	}
	before := dump(t, db, " now ")
	if err := scoredb.SaveScores(t.Context(), db, 9, run.Run-1, late, scoredb.Identities{}); len(late) == 0 ||
		!errors.Is(err, repute.ErrFenced) {
		t.Errorf("%d scores: %v", len(late), err)
	}
	if after := dump(t, db, " now "); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("%d scores before, %d after", len(before), len(after))
	}
}

// What anybody can emit about an agent without an effect does not date its score anew: an
// engine that was there and one that comes later store the same.
func TestEventsWithoutEffectMoveNothing(t *testing.T) {
	t.Parallel()
	l, db := praised(t)
	before := newest(t, db, 1)
	l.mine(l.state(), repute.ValidationResponse{Validator: person(1), TokenID: token(1), RequestHash: common.Hash{9},
		Response: 100}, repute.MetadataUpdate{TokenID: token(1)})
	l.store(t, db, 60)
	settle(t, db, 9, 60)
	again, _ := l.fresh(t)
	l.store(t, again, 60)
	start(t, again)
	settle(t, again, 9, 60)
	if after := newest(t, again, 1); after.Block != before.Block || newest(t, db, 1).Block != before.Block {
		t.Errorf("scored at %v, and at %v by who comes later; before at %v", newest(t, db, 1).Block, after.Block,
			before.Block)
	}
}
