package subgraphdb

import (
	"math"
	"testing"
	"time"
)

// TestPlaceKeys: lists that differ in one value of any type have different keys, and equal ones have the same.
func TestPlaceKeys(t *testing.T) {
	t.Parallel()
	head := Block{Number: 7, Hash: "0x07"}
	seen := map[placeKey]int{}
	for i, args := range [][]any{{}, {int64(1)}, {int64(2)}, {int64(3 << 20)}, {int64(4 << 20)}, {int64(math.MaxInt64)},
		{int64(math.MinInt64)}, {int64(1), int64(23)}, {int64(12), int64(3)}, {"1"}, {"\ufffd"}, {"\xff"}, {"\xfe"},
		{"a\n", "b"},
		{"a", "\nb"}, {`a", "b`}, {"a", "b"}, {[]string{"a", "b"}}, {[]string{`a", "b`}}, {[]byte("a")}, {[]byte{0xff}},
		{nil},
		{[][]byte{{1}, {2, 3}}}, {[][]byte{{1, 2}, {3}}}, {true}, {false}, {[]bool{true}}, {[]bool{false}}} {
		key := placeKeyOf(head, args, "select")
		if before, found := seen[key]; found {
			t.Errorf("%#v has the key of list %d", args, before)
		}
		if key != placeKeyOf(head, args, "select") {
			t.Errorf("%#v has two keys", args)
		}
		seen[key] = i
	}
	for _, other := range []placeKey{placeKeyOf(head, nil, "select 1"),
		placeKeyOf(Block{Number: 8, Hash: "0x07"}, nil, "select"),
		placeKeyOf(Block{Number: 7, Hash: "0x08"}, nil, "select")} {
		if _, found := seen[other]; found || other == placeKeyOf(head, nil, "select") {
			t.Error("another statement or block has the same key")
		}
	}
}

// TestPlaces: the nearest place before a row is found, places of other lists are not, and old ones are forgotten.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := &places{lists: map[placeKey][]place{}}
	one, other := placeKey{1}, placeKey{2}
	p.add(one, place{Row: 0, Block: 9}, place{Row: 2000, Block: 7, Before: 1999},
		place{Row: 1000, Block: 8, Before: 998})
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
