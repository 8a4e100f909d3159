package engine_test

import (
	"testing"

	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/trust/engine"
)

// prove stores that blocks were compared with the chain, up to one, but for an unproven range where it is not empty.
func prove(t *testing.T, db *store.DB, to uint64, unproven string) {
	t.Helper()
	_, err := db.Pool().Exec(t.Context(), `
		insert into block_proofs (chain_id, from_block, to_block, parent, hash, unproven) values (9, 1, $1, '', '', $2::int8multirange)
		on conflict (chain_id, from_block) do update set to_block = excluded.to_block, unproven = excluded.unproven`, to, unproven)
	ok(t, err)
}

// What the engine takes as verified is what answers call verified.
func TestVerifiedAsPublished(t *testing.T) {
	t.Parallel()
	l := newLedger(3)
	db, _ := l.fresh(t)
	l.pad(40)
	l.store(t, db, 40)
	for _, c := range []struct {
		to       uint64
		unproven string
		want     uint64
	}{{0, "", 0}, {30, "{}", 30}, {30, "{[12,14)}", 11}, {30, "{[1,2)}", 0}, {40, "{[2,3), [30,31)}", 1}} {
		if c.to > 0 {
			prove(t, db, c.to, c.unproven)
		}
		chains, err := scoredb.Chains(t.Context(), db)
		ok(t, err)
		published, err := query.Chains(t.Context(), db)
		ok(t, err)
		if got := chains[0].VerifiedTo; got != c.want || published[0].Completeness.VerifiedTo != got {
			t.Errorf("proven to %d without %s: %d, published %d", c.to, c.unproven, got,
				published[0].Completeness.VerifiedTo)
		}
	}
}

// Final scores wait for the verification of their blocks, as long as it follows: the last verified epoch stays in
// force, and says so. Where verification stands still for more than three epochs, newer ones count unverified.
func TestScoresWaitForVerification(t *testing.T) {
	t.Parallel()
	l := newLedger(17)
	db, _ := l.fresh(t)
	s := l.state()
	l.mine(s, s.mint(person(20))...)
	for i := range 4 {
		l.mine(s, s.rate(0, person(i), 80))
	}
	l.pad(10)
	l.store(t, db, 10)
	startWith(t, db, engine.EngineOptions{})
	unproven := settle(t, db, 9, 10)
	if f := final(t, db, 0); unproven.Verified() || f.Verified || f.VerifiedTo != 0 {
		t.Errorf("nothing is proven: %+v", f)
	}
	prove(t, db, 12, "{}")
	await(t, "a verified run of the same epoch", func() bool { return verifiedRun(t, db) })
	if f := final(t, db, 0); !f.Verified || f.VerifiedTo != 12 || newest(t, db, 0).Verified {
		t.Errorf("proven to 12: %+v, provisional %v", f, newest(t, db, 0).Verified)
	}
	s = l.state()
	l.mine(s, s.rate(0, person(4), 20))
	l.pad(20)
	l.store(t, db, 20)
	await(t, "the provisional score", func() bool { return newest(t, db, 0).Block.Number == 11 })
	if run := closedRun(t, db); run.Boundary != 10 {
		t.Fatalf("epoch %d is scored before block 20 is proven", run.Epoch)
	}
	chains, err := query.Chains(t.Context(), db)
	if ok(t, err); !chains[0].Scoring.Verified || chains[0].Scoring.VerifiedTo != 12 {
		t.Errorf("scoring %+v", chains[0].Scoring)
	}
	prove(t, db, 20, "{}")
	if run := settle(t, db, 9, 20); !run.Verified() || final(t, db, 0).VerifiedTo != 20 {
		t.Errorf("proven to 20: %+v", final(t, db, 0))
	}
	l.pad(50)
	l.store(t, db, 50) // three epochs behind
	prove(t, db, 49, "{[24,25)}")
	await(t, "a look at the chain", func() bool { return lookedAgain(t, db) })
	if run := closedRun(t, db); run.Boundary != 20 {
		t.Fatalf("block %d is scored, and 24 is not proven", run.Boundary)
	}
	l.pad(60)
	l.store(t, db, 60)
	if run := settle(t, db, 9, 60); run.Verified() || final(t, db, 0).Verified || final(t, db, 0).VerifiedTo != 23 {
		t.Errorf("verification stands still: %+v", final(t, db, 0))
	}
	prove(t, db, 60, "{}")
	await(t, "a verified run", func() bool { return verifiedRun(t, db) })
	if f := final(t, db, 0); !f.Verified {
		t.Errorf("the score of verified blocks is not: %+v", f)
	}
	replayAll(t, db)
}

// closedRun is the newest closed run.
func closedRun(t *testing.T, db *store.DB) scoredb.Run {
	t.Helper()
	run, err := scoredb.ReadClosedRun(t.Context(), db, 9)
	ok(t, err)
	return run
}

// lookedAgain makes the next look for changes due, and reports whether somebody has looked since.
func lookedAgain(t *testing.T, db *store.DB) bool {
	t.Helper()
	var looked bool
	ok(t, db.Pool().QueryRow(t.Context(), `
		select begun > now() - interval '1 second' from cursors where job = 'marks' and part = 0`).Scan(&looked))
	if !looked {
		_, err := db.Pool().Exec(t.Context(), `
			update cursors set begun = now() - interval '20 seconds'
			where job = 'marks' and begun < now() - interval '1 second'`)
		ok(t, err)
	}
	return looked
}

// verifiedRun reports whether the newest closed run is verified.
func verifiedRun(t *testing.T, db *store.DB) bool {
	run := closedRun(t, db)
	return run.Verified()
}
