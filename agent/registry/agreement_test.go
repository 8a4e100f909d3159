package registry

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/agent"
)

// What counts is what more than half of the nodes say, with the URI of the newest of them and the head of the oldest.
func TestAgreed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		views := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) view {
			v := view{head: rapid.Uint64Range(1, 5).Draw(t, "head"), missing: rapid.IntRange(0, 4).Draw(t, "missing") == 0}
			if !v.missing {
				v.Registered = agent.Registered{Owner: common.Address{rapid.Byte().Draw(t, "owner") % 2},
					URI: fmt.Sprint(v.head)}
			}
			return v
		}), 0, 6).Draw(t, "views")
		said := map[view][]uint64{} // heads of those that say the same
		for _, v := range views {
			key := v
			key.head, key.URI = 0, ""
			said[key] = append(said[key], v.head)
		}
		got, ok := agreed(views)
		for key, heads := range said {
			if 2*len(heads) <= len(views) {
				continue
			}
			want := key
			want.head = slices.Min(heads)
			if !key.missing {
				want.URI = fmt.Sprint(slices.Max(heads))
			}
			if !ok || got != want {
				t.Fatalf("%+v say %+v %v, want %+v", views, got, ok, want)
			}
			return
		}
		if ok {
			t.Fatalf("%+v agree on %+v", views, got)
		}
	})
}

// A number is reached where more than half of the nodes have it, and no larger one is.
func TestReached(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Uint64Range(0, 5), 1, 7).Draw(t, "list")
		by := func(n uint64) (count int) {
			for _, x := range list {
				if x >= n {
					count++
				}
			}
			return count
		}
		got := reached(slices.Clone(list))
		if 2*by(got) <= len(list) || 2*by(got+1) > len(list) {
			t.Fatalf("%d is reached of %v", got, list)
		}
	})
}
