package flow

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// Addresses have the numbers and the order that a map and a sorted list give them, also while clones grow.
func TestAddressesAreNumberedAsInAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x, clone Addresses
		want := map[common.Address]uint32{}
		var list []common.Address
		cloned := 0
		for range rapid.IntRange(0, 100).Draw(t, "added") {
			a := addressOf(rapid.IntRange(0, 60).Draw(t, "address"))
			if n, known := x.Find(a); known != slices.Contains(list, a) || known && n != want[a] {
				t.Fatalf("%s has number %d, %v, want %d", a, n, known, want[a])
			}
			if _, known := want[a]; !known {
				want[a], list = uint32(len(list)), append(list, a)
			}
			if n := x.Add(a); n != want[a] || x.At(n) != a {
				t.Fatalf("%s gets number %d, want %d", a, n, want[a])
			}
			switch rapid.IntRange(0, 9).Draw(t, "other") {
			case 0:
				x.Order()
			case 1:
				clone, cloned = x.Clone(), len(list)
				clone.Add(common.Address{0: 0xff, 19: byte(cloned)})
			}
		}
		sorted := slices.Clone(list)
		slices.SortFunc(sorted, common.Address.Cmp)
		for i, n := range x.Order() {
			if x.At(n) != sorted[i] {
				t.Fatalf("%s is number %d in order, want %s", x.At(n), i, sorted[i])
			}
		}
		if !slices.Equal(x.List(), list) || x.Len() != len(list) || len(x.Order()) != len(list) {
			t.Fatalf("%d addresses in order %v, want %v", x.Len(), x.List(), list)
		}
		if cloned > 0 && (!slices.Equal(clone.List()[:cloned], list[:cloned]) || clone.Len() != cloned+1) {
			t.Fatalf("the clone has %v, want %v and another one", clone.List(), list[:cloned])
		}
	})
}
