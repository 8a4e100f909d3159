package engine_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/scoredb"
	"repute/trust/explain"
	"repute/trust/replay"
)

// A validation contract that leaves the allow-list, or enters it, makes a run: scores
// follow, and those of the run before are still made again by its own list.
func TestAllowListMakesARun(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	events := append(s.mint(person(8)), s.mint(person(9))...)
	for i := range rooted {
		events = append(events, s.rate(0, person(i), int64(60+i)))
	}
	asked := common.Hash{7}
	l.mine(s, append(events, repute.ValidationRequest{Validator: person(1), TokenID: token(0), RequestHash: asked})...)
	l.mine(s, repute.ValidationResponse{Validator: person(1), TokenID: token(0), RequestHash: asked, Response: 100,
		Tag: "hard_finality"})
	l.pad(60)
	l.store(t, db, 60)
	start(t, db)
	first := settle(t, db, 9, 60)
	if first.Validations != replay.HashInput(replay.EncodeValidations(l.chain.Validations)) {
		t.Errorf("run %+v does not name its list", first)
	}
	with := newest(t, db, 0)
	for i, list := range [][]common.Address{nil, l.chain.Validations} {
		c := l.chain
		c.Validations = list
		ok(t, chaindb.AddChain(t.Context(), db, c))
		var r scoredb.Run
		await(t, "another run", func() bool {
			var err error
			r, err = scoredb.ReadRun(t.Context(), db, 9, 0)
			ok(t, err)
			return r.Run == first.Run+uint64(i)+1 && !r.Closed.IsZero()
		})
		now := newest(t, db, 0)
		if back := i == 1; now.Run != r.Run || (now.Score == with.Score) != back ||
			(now.Evidence == with.Evidence) != back {
			t.Errorf("list %v: %s of run %d with evidence %s, at first %s with %s", list, now.Score, now.Run,
				now.Evidence,
				with.Score, with.Evidence)
		}
		replayAll(t, db)
	}
}

// Whatever the chain lists now, a score is explained and made again by its run's list.
func TestExplainGoesByTheRunsList(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	asked := common.Hash{7}
	l.mine(s, append(s.mint(person(8)), s.rate(0, person(2), 90),
		repute.ValidationRequest{Validator: person(1), TokenID: token(0), RequestHash: asked})...)
	l.mine(s, repute.ValidationResponse{Validator: person(1), TokenID: token(0), RequestHash: asked, Response: 100,
		Tag: "hard_finality"})
	l.pad(60)
	l.store(t, db, 60)
	stop := start(t, db)
	settle(t, db, 9, 60)
	stop()
	c := l.chain
	c.Validations = nil
	ok(t, chaindb.AddChain(t.Context(), db, c))
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	stored := newest(t, db, 0)
	for _, at := range []repute.At{{Finality: repute.Latest}, {Block: 60}} {
		a, err := r.Explain(t.Context(), stored.Agent, at, nil)
		ok(t, err)
		if a.Result.Score != stored.Score || a.Result.Rows != 2 {
			t.Errorf("at %v: explained %s of %d rows, stored %s", at, a.Result.Score, a.Result.Rows, stored.Score)
		}
	}
	replayAll(t, db)
}
