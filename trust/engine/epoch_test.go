package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/scoredb"
	"repute/trust/engine"
)

// stored is what scoring left in a database, but for its clocks.
func stored(t *testing.T, db *store.DB) (lines []string) {
	t.Helper()
	rows, err := db.Pool().Query(t.Context(), `
		select 'score ' || (s.chain_id, s.token_id, s.run, s.block, s.block_hash, s.block_time, s.evidence, s.status,
			s.score, s.low, s.high, s.mean, s.confidence, s.tier, s.result, s.facts)::text from trust_scores s
		union all select 'final ' || f::text from trust_finals f
		union all select 'penalty ' || p::text from trust_penalties p
		union all select 'input ' || hash::text from trust_inputs where hash in (select evidence from trust_scores)
		union all select 'stale ' || token_id from trust_stale
		union all select 'run ' || run || ' ' || (closed_at is not null) || ' ' || rated || ' ' || weights::text from trust_runs
		order by 1`)
	ok(t, err)
	lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
	ok(t, err)
	return lines
}

// A pass over all agents stores the same rows as scoring each agent for itself, epoch after epoch,
// with penalties and with scores that age alone changes.
func TestPassStoresWhatAgentsByThemselvesDo(t *testing.T) {
	t.Parallel()
	guarded, warm, stayed := 0, 0, 0
	for seed := range histories(t) {
		l := newLedger(100 + seed)
		var dbs [2]*store.DB
		var steps [2]*engine.Steps
		for i := range dbs {
			dbs[i], _ = l.fresh(t)
			var err error
			steps[i], err = engine.NewSteps(dbs[i], shortEpochs(t), 9)
			ok(t, err)
		}
		for epoch := range 6 {
			if epoch == 4 {
				l.pad(len(l.blocks) + 20) // nothing happens, scores age alone
			} else {
				l.grow(20)
			}
			var lines [2][]string
			for i, db := range dbs {
				l.store(t, db, l.tip().Number)
				ok(t, steps[i].Walk(t.Context()))
				ok(t, steps[i].Rescore(t.Context(), i == 0))
				lines[i] = stored(t, db)
			}
			if steps[0].IsWarm() {
				warm++
			}
			if len(lines[1]) < 5 || !slices.Equal(lines[0], lines[1]) {
				t.Fatalf("seed %d epoch %d: a pass stored %d rows, agents by themselves %d: first difference %s", seed,
					epoch,
					len(lines[0]), len(lines[1]), difference(lines[0], lines[1]))
			}
		}
		stayed += steps[0].Stayed()
		ok(t, dbs[0].Pool().QueryRow(t.Context(), "select $1 + count(*) from trust_finals where guarded",
			guarded).Scan(&guarded))
	}
	if most := 5 * int(histories(t)); warm < most*3/4 {
		t.Errorf("%d of %d later passes read only what changed", warm, most)
	}
	if guarded == 0 || stayed == 0 {
		t.Errorf("%d agents are limited by another one, %d scores stayed: the test shows less than it should", guarded,
			stayed)
	}
}

// difference returns the first line that one of two sorted lists lacks.
func difference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\n" + b[i]
		}
	}
	return "one is longer"
}

// settledVillage is a village with scores, in which no engine runs.
func settledVillage(t *testing.T) (*ledger, *store.DB) {
	t.Helper()
	l, db := village(t, 10)
	stop := start(t, db)
	settle(t, db, 9, 60)
	stop()
	return l, db
}

// beginPass begins the pass over the agents of chain 9 anew, as a mark of every agent does.
func beginPass(t *testing.T, db *store.DB) {
	t.Helper()
	_, err := db.Pool().Exec(t.Context(), "insert into trust_marks (chain_id, every) values (9, true)")
	ok(t, err)
	_, err = scoredb.ResolveMarks(t.Context(), db, 9, 1000)
	ok(t, err)
}

// A process whose lease was taken, whose pass began anew or whose agents another process stored
// stores nothing.
func TestPassIsFenced(t *testing.T) {
	t.Parallel()
	_, db := settledVillage(t)
	ctx := t.Context()
	begin := func() scoredb.Pass {
		beginPass(t, db)
		p, err := scoredb.ReadPass(ctx, db, 9)
		ok(t, err)
		return p
	}
	before := stored(t, db)
	p := begin()
	agents, _, err := scoredb.NewEffects(db).Next(ctx, p, nil, 5)
	ok(t, err)
	none := make([]scoredb.ScoredAgent, len(agents)) // would remove the scores
	for i := range none {
		none[i].StaleAgent = agents[i]
	}
	lease, err := db.Acquire(ctx, scoredb.PassLease(9), "frozen", scoredb.PassLeaseTTL)
	ok(t, err)
	save := func(what string, l store.Lease, p scoredb.Pass) {
		t.Helper()
		if _, err := scoredb.SavePass(ctx, db, l, p, none, false, scoredb.Identities{}); !errors.Is(err,
			repute.ErrFenced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	again := begin()
	save("the pass began anew", lease, p)
	ahead := again
	ahead.After = "3"
	save("another agent is next", lease, ahead)
	ok(t, db.Release(ctx, lease))
	other, err := db.Acquire(ctx, scoredb.PassLease(9), "other", scoredb.PassLeaseTTL)
	ok(t, err)
	save("the lease is lost", lease, again)
	if after := stored(t, db); len(agents) != 5 || !slices.Equal(before, after) {
		t.Errorf("%d agents: fenced writers changed %s", len(agents), difference(before, after))
	}
	if _, err := scoredb.SavePass(ctx, db, other, again, none, false, scoredb.Identities{}); err != nil {
		t.Errorf("the holder of the lease: %v", err)
	}
}

// An agent with an event while a pass has not reached it is scored at once, stays stale until the
// pass is behind it, and the pass does not store an older score over the newer one.
func TestEventAheadOfAPass(t *testing.T) {
	t.Parallel()
	l, db := settledVillage(t)
	ctx := t.Context()
	_, err := db.Pool().Exec(ctx, "update trust_runs set closed_at = null")
	ok(t, err)
	beginPass(t, db)
	p, err := scoredb.ReadPass(ctx, db, 9)
	ok(t, err)
	agents, _, err := scoredb.NewEffects(db).Next(ctx, p, nil, 100)
	ok(t, err)
	old := make([]scoredb.ScoredAgent, len(agents))
	for i, a := range agents {
		old[i] = scoredb.ScoredAgent{StaleAgent: a} // read before the event
	}
	s := l.state()
	l.mine(s, s.rate(4, person(1), 10))
	l.store(t, db, 60)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(ctx))
	for n := 0; n == 0; {
		n, err = steps.Follow(ctx)
		ok(t, err)
	}
	if at := newest(t, db, 4).Block.Number; at != l.tip().Number {
		t.Errorf("the agent is scored as of block %d, want %d", at, l.tip().Number)
	}
	lease, err := db.Acquire(ctx, scoredb.PassLease(9), "test", scoredb.PassLeaseTTL)
	ok(t, err)
	_, err = scoredb.SavePass(ctx, db, lease, p, old, true, scoredb.Identities{})
	ok(t, err)
	ok(t, db.Release(ctx, lease))
	var left []string
	ok(t, db.Pool().QueryRow(ctx, "select array_agg(token_id::text) from trust_scores").Scan(&left))
	if !slices.Equal(left, []string{"4"}) {
		t.Errorf("scores of agents %v are left, want that of 4 alone", left)
	}
	if closed, err := scoredb.CloseRun(ctx, db, 9); closed || err != nil {
		t.Errorf("closed %v, %v before the agent has its final score", closed, err)
	}
	ok(t, steps.Rescore(ctx, true))
	var finals int
	ok(t, db.Pool().QueryRow(ctx, "select count(*) from trust_runs where closed_at is not null").Scan(&finals))
	if finals != 1 {
		t.Errorf("%d closed runs", finals)
	}
}

// The lease of a pass lasts as long as rows are read again, however long that takes, and reading ends when it is lost.
func TestPassKeepsItsLeaseWhileRowsAreRead(t *testing.T) {
	t.Parallel()
	_, db := settledVillage(t)
	ctx := t.Context()
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	steps.RenewOften(time.Millisecond)
	const ttl = 50 * time.Millisecond
	lease, err := db.Acquire(ctx, scoredb.PassLease(9), "one", ttl)
	ok(t, err)
	ok(t, steps.Renewing(ctx, lease, func(ctx context.Context) error {
		time.Sleep(4 * ttl)
		if _, err := db.Acquire(ctx, scoredb.PassLease(9), "another", ttl); !errors.Is(err, repute.ErrHeld) {
			t.Errorf("another process got the lease: %v", err)
		}
		return nil
	}))
	_, err = db.Pool().Exec(ctx, "update leases set epoch = epoch + 1, owner = 'another' where name = $1",
		scoredb.PassLease(9))
	ok(t, err)
	err = steps.Renewing(ctx, lease, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, repute.ErrFenced) {
		t.Errorf("with a lost lease: %v", err)
	}
}
