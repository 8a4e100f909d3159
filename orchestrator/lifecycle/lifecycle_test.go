package lifecycle

import (
	"testing"

	"repute"
	"repute/policy"
)

// phases are phases that ended with these statuses.
func phases(of map[repute.Phase]repute.PhaseStatus) map[repute.Phase]repute.RunPhase {
	out := map[repute.Phase]repute.RunPhase{}
	for p, status := range of {
		out[p] = repute.RunPhase{Phase: p, Status: status}
	}
	return out
}

// TestSkips: after a failure only the record is left, and after a failed verification the summary too.
func TestSkips(t *testing.T) {
	for _, c := range []struct {
		bad     repute.Phase
		status  repute.PhaseStatus
		skipped []repute.Phase
	}{
		{repute.PhasePlan, repute.PhaseOK, nil},
		{repute.PhaseExecute, repute.PhaseFailed, []repute.Phase{repute.PhaseVerify, repute.PhaseSummarize}},
		{repute.PhaseDryRun, repute.PhaseRejected,
			[]repute.Phase{repute.PhaseExecute, repute.PhaseVerify, repute.PhaseSummarize}},
		{repute.PhaseVerify, repute.PhaseFailed, nil},
	} {
		done, skipped := phases(map[repute.Phase]repute.PhaseStatus{c.bad: c.status}), 0
		for _, p := range repute.Phases() {
			if Skips(done, p) {
				if skipped >= len(c.skipped) || c.skipped[skipped] != p {
					t.Errorf("%s %s: %s is skipped", c.bad, c.status, p)
				}
				skipped++
			}
		}
		if skipped != len(c.skipped) {
			t.Errorf("%s %s: %d phases are skipped, not %v", c.bad, c.status, skipped, c.skipped)
		}
	}
}

// TestFinalStatuses: a refusal outweighs a failure, and a canceled run that failed is canceled.
func TestFinalStatuses(t *testing.T) {
	both := map[repute.Phase]repute.PhaseStatus{repute.PhaseTrust: repute.PhaseRejected,
		repute.PhaseSummarize: repute.PhaseFailed}
	for _, c := range []struct {
		done        map[repute.Phase]repute.PhaseStatus
		isCancelled bool
		run         repute.RunStatus
		task        repute.TaskStatus
	}{
		{nil, false, repute.RunCompleted, repute.TaskCompleted},
		{nil, true, repute.RunCompleted, repute.TaskCompleted},
		{both, false, repute.RunFailed, repute.TaskRejected},
		{both, true, repute.RunCancelled, repute.TaskCancelled},
		{map[repute.Phase]repute.PhaseStatus{repute.PhaseVerify: repute.PhaseFailed}, false, repute.RunFailed,
			repute.TaskFailed},
	} {
		e := Ending{Run: &repute.Run{ID: "r", Status: repute.RunRunning}, Done: phases(c.done),
			IsCancelled: c.isCancelled,
			Phase:       repute.RunPhase{Phase: repute.PhaseRecord, Status: repute.PhaseOK}}
		out := e.Outcome()
		if !out.Ended || out.Status != c.run || out.Task != c.task || len(out.Events) != 2 ||
			out.Events[1].Kind != "run.finished" {
			t.Errorf("%+v: %+v", c, out)
		}
	}
}

// TestOutcomes: a run that waits keeps its status, and one that was refused names why.
func TestOutcomes(t *testing.T) {
	run := &repute.Run{ID: "r", Status: repute.RunPlanning}
	waits := Ending{Run: run, Phase: repute.RunPhase{Phase: repute.PhaseTrust, Status: repute.PhaseWaiting},
		Waits: true}
	if out := waits.Outcome(); out.Awaiting != repute.AwaitingApproval || out.Status != repute.RunPlanning ||
		out.Failure != "" || out.Ended {
		t.Errorf("it waits: %+v", out)
	}
	refused := Ending{Run: run, Phase: repute.RunPhase{Phase: repute.PhasePolicy, Status: repute.PhaseRejected},
		Reasons: []policy.Reason{{ID: "limit", Effect: policy.Deny, Text: "too dear"}}}
	if out := refused.Outcome(); out.Failure != "policy: too dear" || len(out.Reasons) == 0 || out.Awaiting != "" {
		t.Errorf("it is refused: %+v", out)
	}
	begun := Ending{Run: run, Phase: repute.RunPhase{Phase: repute.PhaseDryRun, Status: repute.PhaseOK}}
	if out := begun.Outcome(); out.Status != repute.RunRunning || out.Task != repute.TaskRunning {
		t.Errorf("it goes on: %+v", out)
	}
}
