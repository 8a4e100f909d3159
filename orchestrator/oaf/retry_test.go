package oaf_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/internal/modeltest"
	format "repute/manifest/oaf"
	"repute/policy"
	"repute/store/rundb"
)

// A retry of a task does not make a call again whose end is unknown, whatever left it so: a person is asked, or the
// outcome stays what it was.
func TestRetryKeepsUncertainCalls(t *testing.T) {
	for name, c := range map[string]struct {
		timeout float64 // of a call, in seconds; 0: the call has no end of its own
		cancel  bool    // the run is canceled during the call; else its engine ends
		told    string
	}{
		"refused by a person": {0, false, "it is not made again"},
		"canceled":            {0, true, "it is not made again"},
		"no result":           {0.2, false, "unknown whether the tool has done its work"},
	} {
		t.Run(name, func(t *testing.T) {
			var called atomic.Int64
			turns := []modeltest.Turn{call("shop__buy", `{}`), {Status: http.StatusBadRequest}, {Text: "done"}}
			if c.cancel {
				turns = []modeltest.Turn{turns[0], turns[2]}
			}
			s := modeltest.New(turns...)
			h := newHouse(t, s)
			def := agent("buyer", func(a *format.Agent) {
				a.Servers = []format.Server{shop(t, &called, 1)}
				a.Servers[0].Connection.Timeout = c.timeout
			})
			stop := h.start("", def)
			task := h.submit("acme-buyer", policy.Bounds{})
			h.until("the tool is called", func() bool { return called.Load() == 1 })
			refuse := func() {
				open := h.awaited(task)
				runs, err := rundb.TaskRuns(t.Context(), h.db, task.ID)
				ok(t, err)
				ok(t, h.client.Approve(t.Context(), runs[0].ID, open.Subject, false, "alice", "test"))
			}
			switch {
			case c.cancel:
				ok(t, h.client.Cancel(t.Context(), task.ID, "alice", "test"))
			case c.timeout == 0:
				stop()
				h.start("", def)
				refuse()
			}
			if run := h.ended(task); run.Status == repute.RunCompleted {
				t.Fatalf("the first attempt is %s", run.Status)
			}
			ok(t, h.client.Retry(t.Context(), task.ID, repute.PhaseExecute, "alice"))
			if c.cancel {
				refuse()
			}
			if run := h.ended(task); run.Status != repute.RunCompleted || called.Load() != 1 {
				t.Fatalf("%s: %s, after %d calls", run.Status, run.Error, called.Load())
			}
			seen := s.Seen()
			if last := seen[len(seen)-1]; !strings.Contains(strings.Join(last.Texts, " "), c.told) {
				t.Errorf("told %q", last.Texts)
			}
		})
	}
}

// A call that has an effect each time is made once in a task, also by a sub-agent, whose run another plan would begin
// anew: such a retry is refused, and one of the same plan finds the call.
func TestRetryRepeatsNoCall(t *testing.T) {
	var called atomic.Int64
	broken := true
	s := &modeltest.Server{Script: func(_ int, r *modeltest.Request) modeltest.Turn {
		switch {
		case r.Contains("You buy.") && r.Contains("bought"), r.Contains("I have it.") && !broken:
			return modeltest.Turn{Text: "I have it."}
		case r.Contains("You buy."):
			return call("shop__buy", `{}`)
		case r.Contains("I have it."):
			broken = false
			return modeltest.Turn{Status: http.StatusBadRequest}
		}
		return call("agent_acme_buyer", `{"task":"buy it"}`)
	}}
	h := newHouse(t, s)
	h.start("", agent("main", func(a *format.Agent) { a.Agents = []format.AgentRef{{Vendor: "acme", Agent: "buyer"}} }),
		agent("buyer", func(a *format.Agent) {
			a.Body, a.Servers = "You buy.", []format.Server{shop(t, &called, 0)}
		}))
	task := h.submit("acme-main", policy.Bounds{})
	if run := h.ended(task); run.Status != repute.RunFailed || called.Load() != 1 {
		t.Fatalf("the first attempt is %s, after %d calls: %s", run.Status, called.Load(), run.Error)
	}
	err := h.client.Retry(t.Context(), task.ID, repute.PhasePlan, "alice")
	if !errors.Is(err, repute.ErrConflict) || !strings.Contains(err.Error(), "retry from execute") {
		t.Fatalf("another plan: %v", err)
	}
	ok(t, h.client.Retry(t.Context(), task.ID, repute.PhaseExecute, "alice"))
	if run := h.ended(task); run.Status != repute.RunCompleted || called.Load() != 1 {
		t.Fatalf("%s: %s, after %d calls", run.Status, run.Error, called.Load())
	}
}
