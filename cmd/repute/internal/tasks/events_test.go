package tasks

import (
	"strings"
	"testing"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/control"
)

// The error of a run that did not complete is a sentence.
func TestEndedSaysOutcome(t *testing.T) {
	t.Parallel()
	for status, want := range map[repute.RunStatus]string{repute.RunFailed: "the run failed: why",
		repute.RunCancelled: "the run was cancelled: why"} {
		var out strings.Builder
		err := ended(&cli.Program{Stdout: &out},
			control.Run{RunLine: control.RunLine{Status: status, Error: "why"}}, true)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", status, err)
		}
	}
}

// Events of a run below the root name it.
func TestEventsNameRunsBelow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &cli.Program{Stdout: &out}
	for _, run := range []string{"root", "below"} {
		if err := showEvent(p, "root", repute.RunEvent{Run: run, Kind: "phase", Data: []byte("{}")},
			false); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(out.String(), "\n"); strings.Contains(lines[0], "root") ||
		!strings.HasSuffix(lines[1], "below") {
		t.Errorf("events %q", lines)
	}
}
