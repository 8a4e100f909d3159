package orchestrator_test

import (
	"slices"
	"testing"
	"time"

	"repute"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store/rundb"
)

// What a killed worker spent in a phase is not given to the next one again.
func TestKilledPhaseCounts(t *testing.T) {
	t.Parallel()
	h, url := newHouse(t)
	first := spawn(t, url, "")
	h.until("agent is installed",
		func() bool { _, err := rundb.Module(t.Context(), h.db, "steady"); return err == nil })
	const most, before = 8 * time.Second, 4 * time.Second
	task := h.submit(standard.Request{Coordinator: "steady", Goal: "hang",
		Terms: standard.Terms{Budget: policy.Bounds{RuntimeMS: new(most.Milliseconds())}}})
	h.until("some time is counted in the middle of a phase", func() bool {
		run, err := rundb.Run(t.Context(), h.db, task.Run)
		ok(t, err)
		return run.Used.Runtime >= before
	})
	ok(t, first.Process.Kill())
	_ = first.Wait()
	spawn(t, url, "")
	_, run := h.ended(task)
	phases, err := rundb.Phases(t.Context(), h.db, run.ID)
	ok(t, err)
	i := slices.IndexFunc(phases, func(p repute.RunPhase) bool { return p.Phase == repute.PhaseExecute })
	if i < 0 || phases[i].Status != repute.PhaseFailed {
		t.Fatalf("phases %v", h.phases(run.ID))
	}
	if took := phases[i].Ended.Sub(phases[i].Started); took >= most {
		t.Errorf("the second worker had %s: all the time again", took)
	}
}

// Time counts while somebody has the run, whatever becomes of the phase, and not while
// nobody has it.
func TestTimeCountsWhileHeld(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	const hold = 200 * time.Millisecond
	ok(t, rundb.SaveModule(t.Context(), h.db, repute.Module{Slug: "idle", Manifest: []byte(`{}`)}))
	task := h.submit(standard.Request{Coordinator: "idle"})
	take := func() (w rundb.Work, l rundb.Lease) {
		h.until("the run can be taken", func() (taken bool) {
			var err error
			w, l, err = rundb.TakeRun(t.Context(), h.db, task.Run, hold)
			return err == nil
		})
		return w, l
	}
	used := func() time.Duration {
		run, err := rundb.Run(t.Context(), h.db, task.Run)
		ok(t, err)
		return run.Used.Runtime
	}
	_, l := take()
	h.until("a renewal counts", func() bool {
		_, err := rundb.HoldRuns(t.Context(), h.db, []rundb.Lease{l}, hold)
		ok(t, err)
		return used() > 0
	})
	lost := used() // its holder is gone now
	again, l := take()
	if again.Used.Runtime != lost {
		t.Errorf("%s were counted, and %s once nobody had had the run for a while", lost, again.Used.Runtime)
	}
	h.until("giving it back counts", func() bool {
		ok(t, rundb.ReleaseRun(t.Context(), h.db, l))
		return used() > lost
	})
}
