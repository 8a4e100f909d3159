package engine_test

import (
	"testing"

	"repute"
	"repute/store/scoredb"
	"repute/trust"
	"repute/trust/explain"
)

// Scores by other roots are there while an agent waits to be scored: also where a payment's
// rating was revoked since.
func TestPersonalOfWhoWaits(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	events := s.mint(person(8))
	for i := range rooted {
		events = append(events, s.rate(0, person(i), int64(90+i)))
	}
	l.mine(s, events...)
	l.pad(60)
	l.store(t, db, 60)
	stop := start(t, db)
	run := settle(t, db, 9, 60)
	before := newest(t, db, 0)
	pay(t, db, 0, person(0), 100)
	pay(t, db, 0, person(1), 100)
	await(t, "the payments count", func() bool { return newest(t, db, 0).Evidence != before.Evidence })
	settle(t, db, 9, 60)
	stop()
	s = l.state()
	l.mine(s, repute.FeedbackRevoked{TokenID: token(0), Client: person(1), Index: 1})
	l.pad(70)
	l.store(t, db, 70)
	_, err := db.Pool().Exec(t.Context(), `
		create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not yet'; end $$;
		create trigger refuse before insert or update on trust_scores for each row execute function refuse()`)
	ok(t, err)
	start(t, db)
	await(t, "a run that nobody scored by", func() bool {
		next, err := scoredb.ReadRun(t.Context(), db, 9, 0)
		ok(t, err)
		return next.Run > run.Run
	})
	r, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	var roots []repute.TrustRoot
	for i := range rooted {
		roots = append(roots, repute.TrustRoot{Address: person(i), Weight: repute.RootUnit})
	}
	none := func() error { return nil }
	if p, err := r.Personal(t.Context(), repute.AgentID{ChainID: 9, TokenID: token(0)}, explain.Own{Roots: roots},
		none); err != nil ||
		p.Result.Status != trust.Rated {
		t.Errorf("by other roots: %v, %v", p.Result.Status, err)
	}
}
