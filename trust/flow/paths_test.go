package flow

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/trust/fixed"
)

// addressOf is the n-th of the addresses that graphs of tests are made of.
func addressOf(n int) common.Address { return common.BigToAddress(big.NewInt(int64(n) + 1)) }

// walkParams are the parameters that the product uses.
var walkParams = Params{Restart: fixed.Ratio(2, 10), Iterations: 60, FullShare: fixed.Ratio(5, 100), MaxRootShare: fixed.Ratio(1, 10)}

// The count of disjoint paths is that of a plain maximum flow over the split graph.
func TestPathsAreAMaximumFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 14).Draw(t, "nodes")
		b := NewGraphBuilder()
		for i := range n {
			b.Add(addressOf(i))
		}
		for range rapid.IntRange(0, 40).Draw(t, "edges") {
			from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
			b.Vouch(uint32(from), uint32(to), fixed.One)
		}
		g := b.Build()
		var roots []Root
		for range rapid.IntRange(1, 4).Draw(t, "roots") {
			roots = append(roots, Root{addressOf(rapid.IntRange(0, n-1).Draw(t, "root")), fixed.One})
		}
		w := g.Walk(roots, walkParams)
		groups := drawGroups(t, n)
		without := NoNode
		if rapid.Bool().Draw(t, "with subject") {
			without = Node(rapid.IntRange(0, n-1).Draw(t, "subject"))
		}
		got, want := count(NewPathFinder(w), groups, without), plainFlow(w, groups, without)
		if got != want {
			t.Fatalf("%d paths, the flow is %d", got, want)
		}
	})
}

// count asks for all groups, as scoring does while it wants more.
func count(f *PathFinder, groups [][]Node, without Node) int {
	f.Begin(without)
	for i, members := range groups {
		f.Direct(members, i)
	}
	return f.Most(groups, without, 100)
}

func drawGroups(t *rapid.T, n int) [][]Node {
	order := rapid.Permutation(nodesTo(n)).Draw(t, "raters")
	order = order[:rapid.IntRange(0, n).Draw(t, "raters count")]
	var groups [][]Node
	for len(order) > 0 {
		size := min(len(order), rapid.IntRange(1, 3).Draw(t, "group"))
		groups = append(groups, order[:size])
		order = order[size:]
	}
	return groups
}

func nodesTo(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node(i)
	}
	return nodes
}

// plainFlow is the textbook way: a capacity matrix and one search after the other.
// Vertices: entry and exit of every node, then one per group, then source and sink.
func plainFlow(w *Weights, groups [][]Node, without Node) int {
	n := w.graph.Len()
	in, out := func(v Node) int { return int(v) * 2 }, func(v Node) int { return int(v)*2 + 1 }
	source, sink := 2*n+len(groups), 2*n+len(groups)+1
	capacity := make([][]int, sink+1)
	for i := range capacity {
		capacity[i] = make([]int, sink+1)
	}
	for v := range Node(n) {
		if v == without {
			continue
		}
		capacity[in(v)][out(v)] = 1
		if w.ranks[v] == 0 {
			capacity[source][in(v)] = 1
		}
		for _, giver := range w.graph.givers(v) {
			capacity[out(giver)][in(v)] = 1
		}
	}
	for i, members := range groups {
		for _, m := range members {
			capacity[out(m)][2*n+i] = 1
		}
		capacity[2*n+i][sink] = 1
	}
	flow := 0
	for push(capacity, source, sink, make([]bool, sink+1)) {
		flow++
	}
	return flow
}

func push(capacity [][]int, at, sink int, seen []bool) bool {
	if at == sink {
		return true
	}
	seen[at] = true
	for next := range capacity {
		if capacity[at][next] > 0 && !seen[next] && push(capacity, next, sink, seen) {
			capacity[at][next]--
			capacity[next][at]++
			return true
		}
	}
	return false
}
