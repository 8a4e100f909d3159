package store_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"repute/store/changedata"
)

// A bound fires when it separates the two scores, in both directions, and a missing score is on neither side.
func TestScoreCrossesABound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.Custom(func(t *rapid.T) *changedata.Standing {
			if rapid.Bool().Draw(t, "missing") {
				return nil
			}
			n := rapid.IntRange(-100_000, 100_000).Draw(t, "thousandths")
			return &changedata.Standing{Score: float64(n) / 1000, Tier: rapid.IntRange(0, 4).Draw(t, "tier")}
		})
		s := changedata.Score{Old: points.Draw(t, "old"), New: points.Draw(t, "new")}
		bound := rapid.IntRange(-100_000, 100_000).Draw(t, "bound")
		side := func(x *changedata.Standing, sign int) bool {
			return x != nil && sign*(int(math.Round(x.Score*1000))-bound) > 0
		}
		if got, want := s.CrossesAbove(float64(bound)/1000), side(s.Old, 1) != side(s.New, 1); got != want {
			t.Errorf("above %d: %v, want %v of %+v %+v", bound, got, want, s.Old, s.New)
		}
		if got, want := s.CrossesBelow(float64(bound)/1000), side(s.Old, -1) != side(s.New, -1); got != want {
			t.Errorf("below %d: %v, want %v of %+v %+v", bound, got, want, s.Old, s.New)
		}
		back := changedata.Score{Old: s.New, New: s.Old}
		if back.CrossesAbove(float64(bound)/1000) != s.CrossesAbove(float64(bound)/1000) ||
			back.ChangesTier() != s.ChangesTier() {
			t.Error("the way back is no crossing")
		}
	})
}
