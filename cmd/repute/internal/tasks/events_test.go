package tasks

import (
	"strings"
	"testing"

	"repute"
	"repute/cmd/repute/internal/cli"
)

// Events of a run below the root name it.
func TestEventsNameRunsBelow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &cli.Program{Stdout: &out}
	for _, run := range []string{"root", "below"} {
		if err := showEvent(p, "root", repute.RunEvent{Run: run, Kind: "phase", Data: []byte("{}")}, false); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(out.String(), "\n"); strings.Contains(lines[0], "root") ||
		!strings.HasSuffix(lines[1], "below") {
		t.Errorf("events %q", lines)
	}
}
