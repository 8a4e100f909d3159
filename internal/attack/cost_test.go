package attack

import "testing"

// What is measured is the same work each time.
func TestCostIsOfTheSameWork(t *testing.T) {
	a, b := MeasureCost(10_000, params(t)), MeasureCost(10_000, params(t))
	if a.Rated == 0 || a.Rated != b.Rated || a.Nodes != b.Nodes || a.Walk == 0 || a.Scores == 0 {
		t.Errorf("%+v and then %+v", a, b)
	}
}
