package manifestdb

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"repute"
)

// Of several manifests an agent gets the best one, in whatever order they are read: a proven one, then one that its
// file names, then the one of the highest verified tier, and of equal ones the first.
func TestBestManifest(t *testing.T) {
	t.Parallel()
	rank := func(s Summary) (r int) {
		r = s.Verified
		if s.Named {
			r += 10
		}
		if s.Proven {
			r += 100
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		out, want := map[repute.AgentID]Summary{}, Summary{}
		for n := range rapid.IntRange(1, 6).Draw(t, "manifests") {
			s := Summary{Domain: fmt.Sprint(n), Named: rapid.Bool().Draw(t, "named"),
				Verified: rapid.IntRange(0, 3).Draw(t, "tier")}
			s.Proven = s.Named && rapid.Bool().Draw(t, "proven") // what is proven is named
			if n == 0 || rank(s) > rank(want) {
				want = s
			}
			keepBest(out, repute.AgentID{}, s)
		}
		if got := out[repute.AgentID{}]; got != want {
			t.Errorf("kept %+v, the best is %+v", got, want)
		}
	})
}
