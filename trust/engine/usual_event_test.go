package engine_test

import (
	"testing"

	"repute/trust/engine"
)

// An event at a usual agent takes few statements and batches, as each is a round trip to the database.
func TestStatementsOfAnEvent(t *testing.T) {
	t.Parallel()
	l := newLedger(1)
	first, url := l.fresh(t)
	l.grow(60)
	s := l.state()
	for n := range 40 {
		l.mine(s, s.rate(1, person(n%people), 90))
		s = l.state()
	}
	l.pad(110)
	l.store(t, first, 110)
	db, seen := traced(t, url)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	ok(t, steps.Rescore(t.Context(), true))
	_, err = steps.Follow(t.Context())
	ok(t, err)
	for range 3 {
		s := l.state()
		l.mine(s, s.rate(1, person(20), 50))
		l.store(t, db, 110)
		seen.take()
		n, err := steps.Follow(t.Context())
		ok(t, err)
		list, rows := seen.take()
		for _, one := range list {
			t.Logf("%.110s", one)
		}
		if n == 0 || len(list) > 8 {
			t.Errorf("%d agents were scored by %d statements, which read %d rows", n, len(list), rows)
		}
	}
}
