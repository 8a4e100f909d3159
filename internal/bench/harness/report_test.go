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

// TestQuantile: a quantile is one of the values, whatever their order and number.
func TestQuantile(t *testing.T) {
	for share, want := range map[float64]float64{0: 1, 0.25: 1, 0.5: 2, 0.75: 3, 0.99: 4, 1: 4} {
		if got := Quantile([]float64{4, 2, 3, 1}, share); got != want {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if got := Quantile(nil, 0.5); got != 0 {
		t.Errorf("of none: %v", got)
	}
}
