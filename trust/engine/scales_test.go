package engine_test

import (
	"math/big"
	"testing"

	"repute"
	"repute/trust"
	"repute/trust/explain"
	"repute/trust/rating"
)

// What a rater wrote until the last epoch tells on which scale it writes. What it said before anybody could tell
// counts from then on, and both replay.
func TestScaleIsKnownFromTheNextEpochOn(t *testing.T) {
	t.Parallel()
	l := newLedger(11)
	db, _ := l.fresh(t)
	s := l.state()
	var births []repute.Event
	for range 6 {
		births = append(births, s.mint(person(9))...)
	}
	l.mine(s, births...)
	stars := func(agent int, value int64) repute.Event {
		e := s.rate(uint64(agent), person(0), 0).(repute.NewFeedback)
		e.Value, e.Decimals, e.Tag1 = big.NewInt(value), 0, "starred"
		return e
	}
	for agent := range 4 {
		l.mine(s, stars(agent, 5))
	}
	l.pad(20)
	l.store(t, db, 20)
	start(t, db)
	settle(t, db, 9, 20)
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	explain := func(at repute.At) explain.Account {
		t.Helper()
		a, err := r.Explain(t.Context(), repute.AgentID{ChainID: 9, TokenID: token(0)}, at, nil)
		ok(t, err)
		return a
	}
	before := explain(repute.At{Finality: repute.Finalized})
	if before.ByReason[rating.ReasonScale] != 1 || before.Score.Status != trust.Unrated ||
		len(before.Excluded[0].Readings) != 3 {
		t.Errorf("four ratings of five: %v, %s, %+v", before.ByReason, before.Score.Status, before.Excluded)
	}
	l.mine(s, stars(4, 5))
	l.pad(40)
	l.store(t, db, 40)
	settle(t, db, 9, 40)
	after := explain(repute.At{Finality: repute.Finalized})
	if len(after.ByReason) != 0 || after.Score.Status != trust.Thin || after.Score.Mean <= before.Score.Mean {
		t.Errorf("five ratings of five: %v, %+v", after.ByReason, after.Score)
	}
	for _, block := range []uint64{20, 40} {
		_, err := r.Replay(t.Context(), after.Score.Agent, block)
		ok(t, err)
	}
	if again := explain(repute.At{Block: 20}); again.Score.Mean != before.Score.Mean ||
		again.ByReason[rating.ReasonScale] != 1 {
		t.Errorf("as of the first epoch: %+v", again.Score)
	}
}
