package engine_test

import (
	"strings"
	"testing"

	"repute"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust/engine"
)

// A pass that ended with its process is finished by another engine, and the run is not closed
// before.
func TestPassGoesOn(t *testing.T) {
	t.Parallel()
	_, db := village(t, 40)
	stop := start(t, db)
	run := settle(t, db, 9, 60)
	stop()
	want := dump(t, db, "")
	exec := func(sql string) {
		t.Helper()
		_, err := db.Pool().Exec(t.Context(), sql)
		ok(t, err)
	}
	exec("update trust_runs set scored_to = 17, closed_at = null")
	exec("delete from trust_scores where token_id > 17")
	exec("delete from trust_finals where token_id > 17")
	if closed, err := scoredb.CloseRun(t.Context(), db, 9); closed || err != nil {
		t.Errorf("closed %v, %v", closed, err)
	}
	start(t, db)
	if again := settle(t, db, 9, 60); again.Run != run.Run {
		t.Errorf("run %d, want %d", again.Run, run.Run)
	}
	if got := dump(t, db, ""); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %d lines, want %d", len(got), len(want))
	}
}

// Roots and links are read again after a change of theirs alone.
func TestListsAreReadWhenTheyChange(t *testing.T) {
	t.Parallel()
	l, db := village(t, 10)
	steps, err := engine.NewSteps(db, shortEpochs(t), 9)
	ok(t, err)
	ok(t, steps.Walk(t.Context()))
	runs := func() uint64 {
		r, err := scoredb.ReadRun(t.Context(), db, 9, 0)
		ok(t, err)
		return r.Run
	}
	reads := func(change func()) int {
		before := steps.Reads()
		change()
		for range 3 {
			ok(t, steps.Walk(t.Context()))
		}
		return steps.Reads() - before
	}
	if n := reads(func() {}); n != 0 || runs() != 1 {
		t.Errorf("read %d times without a change, %d runs", n, runs())
	}
	link := repute.TrustLink{A: person(3), B: person(4), Reason: "test", Source: "test"}
	for i, change := range []func(){
		func() { ok(t, rootdb.AddLinks(t.Context(), db, 9, []repute.TrustLink{link}, false)) },
		func() { ok(t, rootdb.RemoveRoot(t.Context(), db, 9, repute.DefaultRoots, person(7))) },
		func() { ok(t, rootdb.RemoveLink(t.Context(), db, 9, link.A, link.B)) },
	} {
		if n := reads(change); n != 1 || runs() != uint64(i)+2 {
			t.Errorf("change %d: read %d times, %d runs", i, n, runs())
		}
	}
	var root scoredb.Run
	root, err = scoredb.ReadRun(t.Context(), db, 9, 0)
	ok(t, err)
	_, err = db.Pool().Exec(t.Context(), "delete from trust_inputs where hash = $1", root.Links.Bytes())
	ok(t, err)
	l.pad(70)
	l.store(t, db, 70)
	if err := steps.Walk(t.Context()); err == nil {
		t.Error("a run was made of links that are gone")
	}
	ok(t, steps.Walk(t.Context()))
	if runs() != root.Run+1 {
		t.Errorf("%d runs", runs())
	}
}
