package orchestrator

import (
	"fmt"

	"repute"
	"repute/store/rundb"
)

// stepsDone: each step of the plan was run by the runtime and is completed.
func stepsDone(plan Plan, steps []rundb.Step) Check {
	c := Check{Name: "runtime.steps", Passed: true}
	status := map[string]string{}
	for _, s := range steps {
		status[s.ID] = s.Status
	}
	for _, s := range plan.Steps {
		if status[s.ID] != rundb.StepCompleted {
			c.Passed, c.Details = false, fmt.Sprintf("step %s is %s", s.ID, orWord(status[s.ID], "not run"))
			break
		}
	}
	return c
}

// orWord returns s, or other when s is empty.
func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// callsEnded: of each call it is known how it ended, and no transaction of this attempt
// failed.
func callsEnded(attempt int, receipts []repute.Receipt) Check {
	c := Check{Name: "runtime.receipts", Passed: true}
	for _, r := range receipts {
		switch {
		case !r.Done:
			c.Passed, c.Details = false, fmt.Sprintf("%s %s began and nobody saw its end", r.Kind, r.Ref)
		case r.Kind == repute.CallTransaction && r.Error != "" && ofAttempt(attempt, r.Key):
			c.Passed, c.Details = false, fmt.Sprintf("transaction %s: %s", r.Ref, r.Error)
		}
	}
	return c
}

// failedChecks lists the checks that did not pass, with what they say.
func failedChecks(checks []Check) (out []string) {
	for _, c := range checks {
		if !c.Passed {
			out = append(out, shorten(c.Name+": "+c.Details))
		}
	}
	return out
}

// firstError returns the error of the first step that has one, for the error of the phase.
func firstError(steps []StepResult) string {
	for _, s := range steps {
		if s.Error != "" {
			return fmt.Sprintf(": step %s: %s", s.StepID, shorten(s.Error))
		}
	}
	return ""
}

// receiptsExist: what the agent claims to have left is there.
func receiptsExist(claimed []string, receipts []repute.Receipt) Check {
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
