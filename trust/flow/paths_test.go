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
var walkParams = Params{Restart: fixed.Ratio(2, 10), Iterations: 60, FullShare: fixed.Ratio(5, 100),
	MaxRootShare: fixed.Ratio(1, 10),
	RootGives:    fixed.Int(16), PassOn: fixed.Ratio(3, 10), RootVouch: fixed.One, Vouch: fixed.Ratio(1, 15)}

// The flow is that of a plain maximum flow over the split graph, whatever the weights are.
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
		for i := range w.nodes {
			if w.ranks[i] != unranked {
				w.nodes[i].share = rapid.Uint32Range(0, full).Draw(t, "weight")
			}
		}
		groups := drawGroups(t, n)
		without := NoNode
		if rapid.Bool().Draw(t, "with subject") {
			without = Node(rapid.IntRange(0, n-1).Draw(t, "subject"))
		}
		f, want := NewPathFinder(w), plainFlow(w, groups, without)
		f.Begin(NoNode) // what an earlier flow left behind does not matter
		f.Add(nodesTo(n)[:1])
		f.Flow(fixed.Int(100))
		f.Begin(without)
		for _, members := range groups {
			f.Add(members)
		}
		limit := fixed.Int(rapid.IntRange(0, 5).Draw(t, "limit"))
		if got := f.Flow(limit); got > want || got < min(limit, want) {
			t.Fatalf("the flow is %s with limit %s, a plain one %s", got.Decimal(9), limit.Decimal(0), want.Decimal(9))
		}
	})
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
func plainFlow(w *Weights, groups [][]Node, without Node) fixed.Fixed {
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
		capacity[in(v)][out(v)] = full
		if w.ranks[v] == 0 {
			capacity[source][in(v)] = full
		}
		for _, e := range w.graph.in(v) {
			capacity[out(Node(e.from))][in(v)] = full
		}
	}
	for i, members := range groups {
		for _, m := range members {
			weight := int(w.nodes[m].share)
			capacity[out(m)][2*n+i] = weight
			capacity[2*n+i][sink] = max(capacity[2*n+i][sink], weight)
		}
	}
	flow := 0
	for sent := 1; sent > 0; {
		sent = shortest(capacity, source, sink)
		flow += sent
	}
	return fixed.Fixed(flow) << (fixedBits - shareBits)
}

// shortest sends what fits along a shortest way; 0 when there is none.
func shortest(capacity [][]int, source, sink int) int {
	came := map[int]int{source: source}
	for queue := []int{source}; len(queue) > 0; queue = queue[1:] {
		for next, free := range capacity[queue[0]] {
			if _, seen := came[next]; free > 0 && !seen {
				came[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	if _, reached := came[sink]; !reached {
		return 0
	}
	amount := full
	for at := sink; at != source; at = came[at] {
		amount = min(amount, capacity[came[at]][at])
	}
	for at := sink; at != source; at = came[at] {
		capacity[came[at]][at] -= amount
		capacity[at][came[at]] += amount
	}
	return amount
}
