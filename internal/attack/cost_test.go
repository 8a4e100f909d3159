package attack

import "testing"

// What is measured is the same work each time.
func TestCostIsOfTheSameWork(t *testing.T) {
	a, err := MeasureCost(t.Context(), 10_000, params(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := MeasureCost(t.Context(), 10_000, params(t))
	if err != nil || a.Rated == 0 || a.Rated != b.Rated || a.Agents != b.Agents || a.Walk <= 0 || a.Scores <= 0 || a.Event <= 0 || a.Memory <= 0 {
		t.Errorf("%+v and then %+v: %v", a, b, err)
	}
}
