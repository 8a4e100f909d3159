package standard

import (
	"fmt"

	"repute/orchestrator/journal"
)

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
