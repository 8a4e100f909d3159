package read

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPaceFindsTheLimit: whatever number of blocks an endpoint takes at once, and whether or not it says so, all blocks
// are asked for in order, in spans of at least half of that number but for the last, and few requests are refused.
func TestPaceFindsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(1, 5000).Draw(t, "limit")
		from := rapid.Uint64Range(0, 1000).Draw(t, "from")
		to := from + rapid.Uint64Range(0, 200_000).Draw(t, "more blocks")
		hint := uint64(0)
		if rapid.Bool().Draw(t, "says the limit") {
			hint = limit
		}
		var p pace
		answered, refused := 0, 0
		for next := from; next <= to; {
			r := p.span(next, to)
			if r.From != next || r.To < r.From || r.To > to {
				t.Fatalf("the span after block %d up to %d is %+v", next, to, r)
			}
			if r.To-r.From+1 > limit {
				p.refused(r, hint)
				refused++
				continue
			}
			p.answered(r)
			answered++
			next = r.To + 1
		}
		if most := 24 + answered/maxPatience; refused > most {
			t.Errorf("%d of %d requests were refused, at most %d expected", refused, answered+refused, most)
		}
		if most := 2*int((to-from+1)/limit) + 4; answered > most {
			t.Errorf("%d requests for %d blocks, at most %d expected", answered, to-from+1, most)
		}
	})
}
