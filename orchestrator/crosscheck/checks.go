package crosscheck

import (
	"cmp"
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/store/rundb"
)

// stepsDone checks that each step of the plan was run by the runtime and is completed.
func stepsDone(plan standard.Plan, steps []rundb.Step) standard.Check {
	c := standard.Check{Name: "runtime.steps", Passed: true}
	status := map[string]string{}
	for _, s := range steps {
		status[s.ID] = s.Status
	}
	for _, s := range plan.Steps {
		if status[s.ID] != rundb.StepCompleted {
			c.Passed, c.Details = false, fmt.Sprintf("step %s is %s", s.ID, cmp.Or(status[s.ID], "not run"))
			break
		}
	}
	return c
}

// callsEnded checks that it is known of each call how it ended, and that no transaction of this attempt
// failed.
func callsEnded(attempt int, receipts []repute.Receipt) standard.Check {
	c := standard.Check{Name: "runtime.receipts", Passed: true}
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

// receiptsExist checks that what the agent claims to have left is there.
func receiptsExist(claimed []string, receipts []repute.Receipt) standard.Check {
	c := standard.Check{Name: "runtime.claims", Passed: true}
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
