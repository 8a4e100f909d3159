package engine_test

import (
	"reflect"
	"testing"

	"repute"
	"repute/store/query"
)

// What counts, and why the rest does not, as somebody who counts by hand finds it.
func TestCoverage(t *testing.T) {
	t.Parallel()
	l := newLedger(12)
	db, _ := l.fresh(t)
	s := l.state()
	var births []repute.Event
	for range 5 {
		births = append(births, s.mint(person(20))...)
	}
	l.mine(s, births...)
	tagged := func(agent uint64, client int, value int64, tag string) repute.Event {
		e := s.rate(agent, person(client), value).(repute.NewFeedback)
		e.Tag1 = tag
		return e
	}
	l.mine(s,
		s.rate(0, person(0), 90), s.rate(0, person(1), 90), // roots
		s.rate(0, person(20), 90),                                                      // the owner
		s.rate(1, person(0), 90), s.rate(1, person(30), 90), s.rate(1, person(31), 90), // a root and two strangers
		tagged(2, 0, 90, "unheard"), tagged(2, 0, 90, "uptime"), // no rule; another channel
		s.rate(2, person(0), 101), s.rate(2, person(2), 3), // no such value; of which scale?
		s.rate(3, person(32), 0)) // a stranger alone
	l.pad(20)
	l.store(t, db, 20)
	start(t, db)
	settle(t, db, 9, 20)
	chains, err := query.Chains(t.Context(), db)
	ok(t, err)
	want := repute.Coverage{
		Records: repute.Counted{All: 11, Counted: 3}, Raters: repute.Counted{All: 7, Counted: 2},
		Agents: repute.Counted{All: 4, Counted: 2}, Several: 2, ByRoots: 3, Rated: 1, Thin: 1,
		Tags: []repute.UnreadTag{{Tag: "unheard", Reason: "unknown-tag", Records: 1},
			{Tag: "uptime", Reason: "other-channel", Records: 1}},
		Left: map[string]int64{"self": 1, "no-weight": 3, "unknown-tag": 1, "other-channel": 1, "out-of-range": 1,
			"scale": 1},
	}
	if got := chains[0].Scoring.Coverage; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
