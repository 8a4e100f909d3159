package engine_test

import (
	"testing"

	"repute/store"
	"repute/trust/engine"
)

// manyRatings are those of the large agent in tests of its first event: far more than what an event may read.
const manyRatings = 20_000

// follows lets the engine score one more rating of agent 0, by a person, and fails when it read the agent's earlier
// ratings for that.
func follows(t *testing.T, l *ledger, db *store.DB, seen *statements, steps *engine.Steps, rater int, what string) {
	t.Helper()
	s := l.state()
	l.mine(s, s.rate(0, person(rater), 90))
	l.store(t, db, 60)
	seen.take()
	n, err := steps.Follow(t.Context())
	ok(t, err)
	if _, rows := seen.take(); n == 0 || rows > 200 {
		t.Errorf("%s: %d agents were scored, and %d rows were read", what, n, rows)
	}
}

// sameAsAnew fails unless the stored scores of agent 0 are those of an engine that reads all ratings from the database.
func sameAsAnew(t *testing.T, db *store.DB) {
	t.Helper()
	got := stored(t, db)
	fresh, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, fresh.Walk(t.Context()))
	fresh.ForgetRatings()
	for _, sql := range []string{"insert into trust_marks (chain_id, token_id) values (9, 0)",
		"update trust_scores set block = 0, result = '' where token_id = 0"} {
		_, err = db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	n, err := fresh.Follow(t.Context())
	ok(t, err)
	if want := stored(t, db); n == 0 || difference(got, want) != "one is longer" || len(got) != len(want) {
		t.Errorf("other scores from all ratings: %s", difference(got, want))
	}
}

// The first event after a pass reads only what is new, also where the times of blocks have fractions of a second, which
// the ratings in memory do not have.
func TestFirstEventAfterAPass(t *testing.T) {
	t.Parallel()
	l, db, seen := largeTraced(t, manyRatings)
	_, err := db.Pool().Exec(t.Context(), "update blocks set time = time + interval '0.25 seconds'")
	ok(t, err)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	ok(t, steps.Rescore(t.Context(), true))
	follows(t, l, db, seen, steps, 3, "the first event")
	follows(t, l, db, seen, steps, 4, "the second event")
	sameAsAnew(t, db)
}

// An event that follows a walk at once, before the pass reaches the agent, reads only what is new.
func TestFirstEventBeforeThePass(t *testing.T) {
	t.Parallel()
	l, db, seen := largeTraced(t, manyRatings)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	follows(t, l, db, seen, steps, 3, "before the pass")
	ok(t, steps.Rescore(t.Context(), true))
	follows(t, l, db, seen, steps, 4, "after the pass")
	sameAsAnew(t, db)
}

// An agent that is rated in every block was rated after the epoch's last block when its pass runs.
func TestFirstEventOfABusyAgent(t *testing.T) {
	t.Parallel()
	l, db, seen := largeTraced(t, manyRatings)
	s := l.state()
	l.mine(s, s.rate(0, person(3), 90))
	l.store(t, db, 60)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	ok(t, steps.Rescore(t.Context(), true))
	follows(t, l, db, seen, steps, 4, "after the pass")
	sameAsAnew(t, db)
}

// An event during a pass makes the final score due too, which is computed from the ratings in memory.
func TestFinalScoreByAnEvent(t *testing.T) {
	t.Parallel()
	l, db, seen := largeTraced(t, manyRatings)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	_, err = db.Pool().Exec(t.Context(),
		"insert into trust_stale (chain_id, token_id, cause, final) values (9, 0, 0, false)")
	ok(t, err)
	ok(t, steps.Pass(t.Context())) // leaves the agent out
	follows(t, l, db, seen, steps, 4, "with the final score")
	ok(t, steps.Rescore(t.Context(), true))
	sameAsAnew(t, db)
	var finals int
	ok(t, db.Pool().QueryRow(t.Context(), "select count(*) from trust_finals where token_id = 0").Scan(&finals))
	if finals != 1 {
		t.Errorf("the agent has %d final scores", finals)
	}
}
