package standard

import (
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/store/rundb"
)

// StepsDone checks that each step of the plan was run by the runtime and is completed.
func StepsDone(plan Plan, steps []rundb.Step) Check {
	c := Check{Name: "runtime.steps", Passed: true}
	status := map[string]string{}
	for _, s := range steps {
		status[s.ID] = s.Status
	}
	for _, s := range plan.Steps {
		if status[s.ID] != rundb.StepCompleted {
			c.Passed, c.Details = false, fmt.Sprintf("step %s is %s", s.ID, OrWord(status[s.ID], "not run"))
			break
		}
	}
	return c
}

// OrWord returns s, or other when s is empty.
func OrWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// CallsEnded checks that it is known of each call how it ended, and that no transaction of this attempt
// failed.
func CallsEnded(attempt int, receipts []repute.Receipt) Check {
	c := Check{Name: "runtime.receipts", Passed: true}
	for _, r := range receipts {
		switch {
		case !r.Done:
			c.Passed, c.Details = false, fmt.Sprintf("%s %s began and nobody saw its end", r.Kind, r.Ref)
		case r.Kind == repute.CallTransaction && r.Error != "" && journal.OfAttempt(attempt, r.Key):
			c.Passed, c.Details = false, fmt.Sprintf("transaction %s: %s", r.Ref, r.Error)
		}
	}
	return c
}

// FailedChecks lists the checks that did not pass, with what they say.
func FailedChecks(checks []Check) (out []string) {
	for _, c := range checks {
		if !c.Passed {
			out = append(out, journal.Shorten(c.Name+": "+c.Details))
		}
	}
	return out
}

// FirstError returns the error of the first step that has one, for the error of the phase.
func FirstError(steps []StepResult) string {
	for _, s := range steps {
		if s.Error != "" {
			return fmt.Sprintf(": step %s: %s", s.StepID, journal.Shorten(s.Error))
		}
	}
	return ""
}

// ReceiptsExist checks that what the agent claims to have left is there.
func ReceiptsExist(claimed []string, receipts []repute.Receipt) Check {
	c := Check{Name: "runtime.claims", Passed: true}
	known := map[string]bool{}
	for _, r := range receipts {
		known[fmt.Sprint(r.ID)], known[r.Ref] = true, true
	}
	for _, id := range claimed {
		if !known[id] {
			c.Passed, c.Details = false, fmt.Sprintf("there is no receipt %.80q", id)
		}
	}
	return c
}
