package attack

import "testing"

func TestCost(t *testing.T) {
	for _, n := range []int{10_000, 100_000, 500_000} {
		t.Logf("%+v", MeasureCost(n, params(t)))
	}
}
