package trust_test

import (
	"testing"
	"time"

	"repute"
)

// Agents that were registered ahead and lie unused, and one that the guilty party bought, do not
// get old enough to be free. One that somebody vouched for rated long ago is.
func TestSleepersAreNew(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, append(append(append(s.mint(person(8)), s.mint(person(8))...), s.mint(person(20))...), s.mint(person(8))...)...)
	s = l.state()
	l.mine(s, s.rate(3, person(0), 99), s.rate(1, person(500), 99)) // the other is of a fresh wallet
	l.later = 91 * 24 * time.Hour
	s = l.state()
	var words []repute.Event
	for i := range rooted {
		words = append(words, s.rate(0, person(i), int64(i)), s.rate(3, person(i), int64(90+i)))
	}
	l.mine(s, words...)
	l.give(2, person(8)) // bought by the guilty one
	s = l.state()
	words = nil
	for i := range rooted {
		words = append(words, s.rate(1, person(i), int64(90+i)), s.rate(2, person(i), int64(90+i)))
	}
	l.mine(s, words...)
	l.pad(60)
	l.run(t, db)
	if bad := newest(t, db, 0); bad.High >= -10_000 {
		t.Fatalf("the bad agent: %+v", bad)
	}
	for agent, what := range map[uint64]string{1: "never used since it was registered 91 days ago", 2: "registered 91 days ago by another, bought today"} {
		if a := newest(t, db, agent); guardOf(t, a).Holder != person(8) || a.Tier != 0 || a.High >= -10_000 {
			t.Errorf("agent %d of the guilty owner, %s: %+v, limited by %+v", agent, what, a, guardOf(t, a))
		}
	}
	if a := newest(t, db, 3); guardOf(t, a) != (limit{}) || a.Score < 50_000 {
		t.Errorf("agent 3, in use for 91 days: %d, limited by %+v", a.Score, guardOf(t, a))
	}
	replayAll(t, db)
}
