// Package lifecycle has the rules of the nine phases of a run: which phases are skipped (Skips), and what follows for
// the run and its task from what came of one (Ending). It is pure, so that the rules can be tested for every
// combination of outcomes; the engine stores what follows in one transaction with the phase.
//
// A run goes on while its phases are ok. After one that failed or was rejected only the last phase, record, is done,
// but that a run whose verification failed is still summarized, for the person who reads what happened. Record closes
// the run: its status is completed if no phase was bad, cancelled if somebody had asked for that, and failed
// otherwise. The task is rejected where a rule, a policy or a person refused it, and failed where the work did not
// succeed. A phase that waits for a person changes no status: the run is awaiting.
package lifecycle

import (
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store/rundb"
)

// Skips reports whether a phase has nothing to do: after a failure only finish remains, and after a
// failed verification also summarize. done are the phases that are stored.
func Skips(done map[repute.Phase]repute.RunPhase, p repute.Phase) bool {
	if p == repute.PhaseRecord {
		return false
	}
	for before, known := range done {
		bad := known.Status == repute.PhaseFailed || known.Status == repute.PhaseRejected
		if bad && before < p && !(before == repute.PhaseVerify && p == repute.PhaseSummarize) {
			return true
		}
	}
	return false
}

// Ending is a phase that ended, in its run.
type Ending struct {
	Run *repute.Run
	// Done are the phases of the run that ended before.
	Done map[repute.Phase]repute.RunPhase
	// Phase is the phase that ended, and Reasons is why it was refused.
	Phase   repute.RunPhase
	Reasons []policy.Reason
	// Waits says that a person must decide before the run continues.
	Waits bool
	// IsCancelled says that somebody cancelled the run.
	IsCancelled bool
}

// Outcome returns the changes of run and task that follow.
func (e *Ending) Outcome() rundb.PhaseOutcome {
	row := e.Phase
	out := rundb.PhaseOutcome{Run: e.Run.ID, RunPhase: row, Status: e.Run.Status}
	event := map[string]any{"phase": row.Phase.String(), "status": row.Status}
	if row.Error != "" {
		event["error"] = row.Error
	}
	if len(e.Reasons) > 0 {
		out.Reasons = journal.JSON(e.Reasons)
		event["reasons"] = e.Reasons
	}
	switch {
	case e.Waits:
		out.Awaiting = repute.AwaitingApproval
	case row.Phase == repute.PhaseRecord:
		out.Ended = true
		out.Status, out.Task = e.statuses()
	case row.Status != repute.PhaseOK:
		out.Failure = row.Error
		if out.Failure == "" {
			out.Failure = journal.Shorten(fmt.Sprintf("%s: %s", row.Phase,
				transaction.Texts(transaction.Against(e.Reasons))))
		}
	case row.Phase == repute.PhaseDiscover:
		out.Status, out.Task = repute.RunPlanning, repute.TaskAssigned
	case row.Phase == repute.PhaseDryRun:
		out.Status, out.Task = repute.RunRunning, repute.TaskRunning
	}
	out.Events = append(out.Events, repute.RunEvent{Run: e.Run.ID, Kind: "phase.finished", Data: journal.JSON(event)})
	if out.Ended {
		out.Events = append(out.Events, repute.RunEvent{Run: e.Run.ID, Kind: "run.finished",
			Data: journal.JSON(map[string]any{"status": out.Status, "task": out.Task, "attempt": e.Run.Attempt,
				"error": e.Run.Error})})
	}
	return out
}

// statuses returns the final statuses of run and task.
func (e *Ending) statuses() (repute.RunStatus, repute.TaskStatus) {
	run, task := repute.RunCompleted, repute.TaskCompleted
	for p, known := range e.Done {
		switch {
		case p == repute.PhaseRecord:
		case known.Status == repute.PhaseRejected:
			run, task = repute.RunFailed, repute.TaskRejected
		case known.Status == repute.PhaseFailed && task != repute.TaskRejected:
			run, task = repute.RunFailed, repute.TaskFailed
		}
	}
	if run == repute.RunFailed && e.IsCancelled {
		return repute.RunCancelled, repute.TaskCancelled
	}
	return run, task
}
