package flow

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"repute/trust/fixed"
)

// A graph does not depend on the order of its edges, nor on whether they are added one by one or as lists that are in
// order already, with links between addresses and pairs that have several edges.
func TestGraphOfListsIsThatOfSingleEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 12).Draw(t, "nodes")
		node := rapid.Uint32Range(0, uint32(nodes-1))
		var edges []Edge
		for range rapid.IntRange(0, 60).Draw(t, "edges") {
			edges = append(edges, Edge{node.Draw(t, "from"), node.Draw(t, "to"),
				rapid.Uint32Range(1, 1<<16).Draw(t, "weight")})
		}
		var links [][2]uint32
		for range rapid.IntRange(0, 2).Draw(t, "links") {
			links = append(links, [2]uint32{node.Draw(t, "a"), node.Draw(t, "b")})
		}
		build := func(add func(*GraphBuilder)) *Weights {
			b := NewGraphBuilder()
			for i := range nodes {
				b.Add(addressOf(i))
			}
			for _, l := range links {
				b.Link(l[0], l[1])
			}
			add(b)
			p := Params{Restart: fixed.Ratio(15, 100), Iterations: 9, FullShare: fixed.One, MaxRootShare: fixed.One,
				RootGives: fixed.Int(9), PassOn: fixed.Ratio(1, 2), RootVouch: fixed.One, Vouch: fixed.One,
				FullOpinion: fixed.One}
			return b.Build().Walk([]Root{{Address: addressOf(0), Weight: fixed.One}}, p)
		}
		want := build(func(b *GraphBuilder) {
			for _, e := range edges {
				b.Vouch(e.From, e.To, fixed.Fixed(e.Weight)<<16)
			}
		})
		slices.SortStableFunc(edges, func(a, b Edge) int { return int(a.To) - int(b.To) })
		cut := rapid.IntRange(0, len(edges)).Draw(t, "cut") // may be within a receiver's edges
		room := rapid.IntRange(0, 80)
		lists := NewEdgeLists([]int{cut + room.Draw(t, "room"), len(edges) - cut + room.Draw(t, "more room")})
		addTo(&lists[0], edges[:cut])
		addTo(&lists[1], edges[cut:])
		got := build(func(b *GraphBuilder) { b.VouchAll(lists) })
		if got.Sum() != want.Sum() || got.Graph().Edges() != want.Graph().Edges() {
			t.Fatalf("%d edges by lists, %d one by one, or other weights", got.Graph().Edges(), want.Graph().Edges())
		}
	})
}

// addTo adds edges that are in order of their receivers to an empty list.
func addTo(list *EdgeList, edges []Edge) {
	for i, e := range edges {
		list.Add(e.From, e.Weight)
		if i+1 == len(edges) || edges[i+1].To != e.To {
			list.End(e.To)
		}
	}
}

// Keys are in the order of their addresses.
func TestKeysAreOrderedAsAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b [20]byte
		for _, to := range []*[20]byte{&a, &b} {
			to[rapid.IntRange(0, 19).Draw(t, "place")] = byte(rapid.IntRange(0, 3).Draw(t, "value"))
		}
		x, y := keyOf(a, 1), keyOf(b, 1)
		if got, want := x.compare(y), slices.Compare(a[:], b[:]); got != want {
			t.Fatalf("%x, %x: %d, want %d", a, b, got, want)
		}
	})
}
