package main

import (
	"repute"
	"strings"
	"testing"
)

// Events of a run below the root name it.
func TestEventsNameRunsBelow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &program{stdout: &out}
	for _, run := range []string{"root", "below"} {
		if err := p.showEvent("root", repute.RunEvent{Run: run, Kind: "phase", Data: []byte("{}")}, false); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Split(out.String(), "\n"); strings.Contains(lines[0], "root") || !strings.HasSuffix(lines[1], "below") {
		t.Errorf("events %q", lines)
	}
}
