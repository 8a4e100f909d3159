package engine_test

import (
	"fmt"
	"testing"

	"repute/store"
	"repute/trust/engine"
)

// What limits an agent does not depend on which others are scored with it: here one of the same owner that a domain
// with many more bad agents proves.
func TestPenaltiesOfABatch(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	events := s.at("own.example", person(8)) // 0, and 1 to 11 without a domain
	for range 11 {
		events = append(events, s.mint(person(8))...)
	}
	l.mine(s, events...)
	s = l.state()
	events = nil
	for agent := range uint64(12) {
		events = append(events, s.words(agent, 90, 0, 3)...)
	}
	l.mine(s, events...)
	l.store(t, db, l.tip().Number)
	serve(t, db, "own.example", person(8), 0)
	l.pad(60)
	l.store(t, db, 60)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	ok(t, steps.Rescore(t.Context(), true))
	_, err = steps.Follow(t.Context())
	ok(t, err)
	_, err = db.Pool().Exec(t.Context(), `
		insert into trust_penalties (chain_id, final, token_id, identity, owner, score, high, tier, run, domains)
		select 9, false, n, $1, $1, -90000, -80000, 0, 1, case when n > 100 then '{own.example}' else '{}' end::text[]
		from generate_series(100, 110) n`, person(8).Bytes())
	ok(t, err)
	scores := func(together ...[]uint64) (out []string) {
		for _, batch := range together {
			for _, agent := range batch {
				_, err := db.Pool().Exec(t.Context(), "insert into trust_marks (chain_id, token_id) values (9, $1)",
					agent)
				ok(t, err)
			}
			n, err := steps.Follow(t.Context())
			ok(t, err)
			if n != len(batch) {
				t.Fatalf("%d agents were scored, want %d", n, len(batch))
			}
		}
		return guarded(t, db)
	}
	alone := scores([]uint64{0}, []uint64{1})
	if len(alone) != 2 || alone[0] == alone[1] {
		t.Fatalf("each for itself: %s", alone)
	}
	same(t, "scored together", scores([]uint64{0, 1}), alone)
}

// guarded are the scores of agents 0 and 1 in short, as far as a penalty limits them.
func guarded(t *testing.T, db *store.DB) (out []string) {
	t.Helper()
	for agent := range uint64(2) {
		if a := newest(t, db, agent); guardOf(t, a) != (limit{}) {
			out = append(out, fmt.Sprint(a.Score, a.Low, a.High, a.Tier, guardOf(t, a)))
		}
	}
	return out
}
