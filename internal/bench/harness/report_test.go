package harness

import (
	"strings"
	"testing"
)

// TestTargets: a value at its limit is met, and a value beyond it is missed.
func TestTargets(t *testing.T) {
	r := Report{Targets: []Target{AtLeast("a", 0.6, 0.6, ""), AtMost("b", 400, 400, "MB"), Holds("c", true)}}
	if !r.OK() {
		t.Errorf("limits are part of what is allowed: %v", r.Targets)
	}
	for _, missed := range []Target{AtLeast("a", 0.59, 0.6, ""), AtMost("b", 401, 400, "MB"), Holds("c", false)} {
		if r := (Report{Targets: []Target{missed}}); r.OK() || !strings.HasPrefix(missed.String(), "MISSED") {
			t.Errorf("%v is taken for met", missed)
		}
	}
}
