package subgraphdb

import (
	"testing"
	"time"
)

// TestPlaces: the nearest place before a row is found, places of other lists are not, and old ones are forgotten.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := &places{lists: map[placeKey][]place{}}
	one, other := placeKey{1}, placeKey{2}
	p.add(one, place{Row: 0, Block: 9}, place{Row: 2000, Block: 7, Before: 1999}, place{Row: 1000, Block: 8, Before: 998})
	for row, want := range map[int64]int64{0: 9, 999: 9, 1000: 8, 1999: 8, 2000: 7, 9999: 7} {
		if got := p.before(one, row); got == nil || got.Block != want {
			t.Errorf("before row %d: %+v, not block %d", row, got, want)
		}
	}
	if got := p.before(other, 5); got != nil {
		t.Errorf("of no list: %+v", got)
	}
	p.lists[one][1].found = time.Now().Add(-2 * placesFresh)
	if got := p.before(one, 2500); got == nil || got.Block != 8 {
		t.Errorf("an old place is used: %+v", got)
	}
	for i := range 3 * placesKept {
		p.add(placeKey{3, byte(i)}, place{})
	}
	if n := len(p.lists); n > placesKept {
		t.Errorf("%d lists are kept", n)
	}
	for range 3 {
		p.add(other, make([]place, placesMost)...)
	}
	if n := len(p.lists[other]); n > placesMost {
		t.Errorf("%d places are kept", n)
	}
}
