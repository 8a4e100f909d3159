package flow

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
)

// bigGraph is random, with numbers for names.
func bigGraph(nodes, edges int) *Graph {
	rng := rand.New(rand.NewPCG(1, 2))
	var list []Edge
	for range edges {
		x := rng.Float64()
		list = append(list, Edge{uint32(rng.IntN(nodes)), uint32(float64(nodes) * x * x * x * x),
			1 + uint32(rng.IntN(1<<16))})
	}
	return graphOf(nodes, list)
}

// graphOf makes a graph of edges between nodes.
func graphOf(nodes int, list []Edge) *Graph {
	b := NewGraphBuilder()
	for i := range nodes {
		b.Add(addressOf(i))
	}
	for _, e := range list {
		b.Vouch(e.From, e.To, fixed.Fixed(e.Weight)<<16)
	}
	return b.Build()
}

// The walk's order of edges gives each node what the plain sum over its givers gives.
func TestFlowIsThePlainSum(t *testing.T) {
	// steps that are too long
	far := []Edge{{0, 1, 1 << 16}, {0, 299_999, 1 << 16}, {299_999, 0, 1 << 16}, {150_000, 299_998, 7}}
	for _, g := range []*Graph{bigGraph(100_000, 400_000), bigGraph(50, 400), graphOf(300_000, far), graphOf(1, nil),
		graphOf(0, nil)} {
		rng := rand.New(rand.NewPCG(3, 4))
		given, got, want := g.edgeBlocks().givers(g.Len()), make([]uint64, g.Len()), make([]uint64, g.Len())
		var sum uint64
		for n := range got {
			given[n], got[n] = rng.Uint64N(1<<40), 77
		}
		for n := range want {
			for i := g.start[n]; i < g.start[n+1]; i++ {
				want[n] += times(given[g.edges[i].from], uint64(g.edges[i].weight))
			}
			sum += want[n]
		}
		if s := g.edgeBlocks().run(given, got); s != sum || !slices.Equal(got, want) {
			t.Errorf("%d nodes: the sum is %d, want %d", g.Len(), s, sum)
		}
	}
}

// Roots that a graph does not know are to a walk what they are to a graph made with them.
func TestPersonalIsTheWalkOfTheWholeGraph(t *testing.T) {
	const nodes, unknown = 1<<giverBits - 3, 7 // the unknown begin another block
	rng := rand.New(rand.NewPCG(5, 6))
	b, whole := NewGraphBuilder(), NewGraphBuilder()
	for i := range nodes + unknown {
		if i < nodes {
			b.Add(addressOf(i))
		}
		whole.Add(addressOf(i))
	}
	for range 4 * nodes {
		from, to := uint32(rng.IntN(nodes)), uint32(rng.IntN(nodes))
		b.Vouch(from, to, fixed.One)
		whole.Vouch(from, to, fixed.One)
	}
	var roots []Root
	for _, i := range []int{0, 5, 900, nodes, nodes + unknown - 1} {
		roots = append(roots, Root{addressOf(i), fixed.One})
	}
	p := walkParams
	graph, want := b.Build(), whole.Build().Walk(roots, p)
	for _, isFreed := range []bool{false, true} {
		if isFreed {
			graph.FreeWalk()
		}
		got := graph.Personal(roots, p)
		for i := range nodes + unknown {
			if a, b := weightOf(got, i), weightOf(want, i); a != b {
				t.Fatalf("node %d weighs %s, want %s", i, a.Decimal(9), b.Decimal(9))
			}
		}
	}
}

// Addresses that a builder knows are part of the graph only where they are used, and have their nodes by number.
func TestGraphOfKnownAddresses(t *testing.T) {
	var known Addresses
	for i := range 6 {
		known.Add(addressOf(5 - i))
	}
	b, plain := NewGraphBuilderOf(&known), NewGraphBuilder()
	from, _ := known.Find(addressOf(3))
	b.Rates(from)
	b.Vouch(from, b.Add(addressOf(9)), fixed.One)
	plain.Rates(plain.Add(addressOf(3)))
	plain.Vouch(plain.Add(addressOf(3)), plain.Add(addressOf(9)), fixed.One)
	got, want := b.Build(), plain.Build()
	if got.Len() != 2 || got.Node(addressOf(1)) != NoNode ||
		got.Walk(nil, walkParams).Sum() != want.Walk(nil, walkParams).Sum() {
		t.Errorf("%d nodes, or another graph", got.Len())
	}
	for i := range known.Len() {
		if a := known.At(uint32(i)); got.Nodes()[i] != want.Node(a) {
			t.Errorf("%s is node %d, want %d", a, got.Nodes()[i], want.Node(a))
		}
	}
	if _, isKnown := known.Find(addressOf(9)); isKnown || !got.Spoke(got.Node(addressOf(3))) {
		t.Error("the graph changed the addresses, or nobody spoke")
	}
}

// weightOf returns the weight of an address of addressOf.
func weightOf(w *Weights, i int) fixed.Fixed {
	_, weight := w.Rater(addressOf(i))
	return weight
}

// A builder that has built begins anew.
func TestBuilderBuildsAgain(t *testing.T) {
	b := NewGraphBuilder()
	b.Vouch(b.Add(addressOf(1)), b.Add(addressOf(2)), fixed.One)
	first := b.Build()
	if again := b.Build(); again.Len() != 0 || again.Edges() != 0 {
		t.Errorf("%d nodes and %d edges of nothing", again.Len(), again.Edges())
	}
	b.Vouch(b.Add(addressOf(3)), b.Add(addressOf(1)), fixed.One)
	second := b.Build()
	if first.Len() != 2 || first.Edges() != 1 || first.Node(addressOf(2)) == NoNode || second.Len() != 2 ||
		second.Node(addressOf(2)) != NoNode {
		t.Errorf("%d nodes at first, then %d", first.Len(), second.Len())
	}
}

// Cycles and loops make no trust: there is never more than all.
func TestCyclesMakeNoTrust(t *testing.T) {
	const nodes, one = 120, 1 << 16
	rng := rand.New(rand.NewPCG(7, 8))
	var edges []Edge
	for range 4 * nodes {
		edges = append(edges, Edge{uint32(rng.IntN(nodes)), uint32(rng.IntN(nodes)), one})
	}
	var roots []Root
	for i := range 20 {
		roots = append(roots, Root{addressOf(i), fixed.One})
	}
	before := graphOf(nodes+2, edges).Walk(roots, walkParams)
	edges = append(edges, Edge{25, 25, one}, Edge{nodes, nodes, one}, Edge{nodes, nodes + 1, one},
		Edge{nodes + 1, nodes, one})
	loops := graphOf(nodes+2, edges).Walk(roots, walkParams)
	var sum uint64
	for n, m := range loops.mass {
		if sum += m; m != before.mass[n] {
			t.Errorf("node %d has other trust because of loops", n)
		}
	}
	if sum == 0 || sum > whole {
		t.Errorf("trust adds up to %d of %d", sum, uint64(whole))
	}
}

// TestOwnRootsAreAddedWithoutCopies: the lists of a graph are copied once for all roots of a caller that it does not
// know, and its own stay as they are.
func TestOwnRootsAreAddedWithoutCopies(t *testing.T) {
	const nodes, roots = 2000, 100
	b := NewGraphBuilder()
	for i := range nodes {
		b.Add(addressOf(i))
	}
	g := b.Build()
	unknown := make([]common.Address, roots)
	for i := range unknown {
		unknown[i] = addressOf(nodes + i)
	}
	var more *Graph
	if n := testing.AllocsPerRun(3, func() { more = g.with(unknown) }); n > roots {
		t.Errorf("%v allocations for %d roots", n, roots)
	}
	if g.Len() != nodes || len(g.start) != nodes+1 || len(g.given) != nodes || g.Node(unknown[0]) != NoNode {
		t.Errorf("the graph has changed: %d nodes", g.Len())
	}
	for i, a := range unknown {
		if n := more.Node(a); int(n) != nodes+i || more.Name(n) != a || len(more.in(n)) != 0 {
			t.Fatalf("root %d is node %d, of %s", i, n, more.Name(n))
		}
	}
}
