package trust

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// whole is all trust there is, in the walk's units.
const whole = 1 << 60

// Weights says how much each identity of a graph is vouched for by a set of roots. It
// does not change and is safe for concurrent use.
type Weights struct {
	graph *Graph
	mass  []uint64 // by node, units of 2^-60; all of them together are at most 1
	tau   uint64   // the mass of a rater of full weight
	share []uint32 // by node, mass in terms of tau, at most 1, in units of 2^-31
	roots []rootShare
	ways  []way // by node
}

// way is the shortest one from a root to a node: how many steps it has, and who vouches
// for the node on it, NoNode for a root and for those no root leads to.
type way struct {
	voucher Node
	rank    uint16
}

// unranked is the rank of those no root leads to.
const unranked = 1<<16 - 1

// Walk spreads trust from the roots: in each of Params.Walk.Iterations rounds every
// identity passes on what it has, but for the restart share, to those it vouches for;
// what is not passed on starts again at the roots. Roots the graph does not know are
// left out; without roots nobody has weight.
func (g *Graph) Walk(roots []Root, p *Params) *Weights {
	w := &Weights{graph: g, roots: rootShares(g, roots, p.Walk.MaxRootShare)}
	w.mass, w.share = make([]uint64, g.Len()), make([]uint32, g.Len())
	w.rankNodes()
	if len(w.roots) == 0 {
		return w
	}
	w.restart(w.mass, whole)
	given, next := make([]uint64, g.Len()), make([]uint64, g.Len())
	keep := uint64(One - p.Walk.Restart)
	for range p.Walk.Iterations {
		passed := w.step(given, next, keep)
		w.restart(next, whole-passed)
		w.mass, next = next, w.mass
	}
	w.tau = max(1, times(w.medianRoot(), uint64(p.Walk.FullShare)))
	for n, m := range w.mass {
		w.share[n] = uint32(min(One, Fixed(m).scaled(int64(One), int64(w.tau))) >> 1)
	}
	return w
}

// times is a*b for b in units of 2^-32.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<32 | lo>>32
}

func (w *Weights) restart(mass []uint64, rest uint64) {
	for _, r := range w.roots {
		mass[r.node] += times(rest, uint64(r.share))
	}
}

// step fills next with what each identity receives and gives the sum.
func (w *Weights) step(given, next []uint64, keep uint64) uint64 {
	for n, m := range w.mass {
		given[n] = times(m, keep)
	}
	return w.graph.flow.run(given, next)
}

// parts cuts the nodes into runs of about the same number of edges.
func (g *Graph) parts(n int) []int {
	parts := []int{0}
	for i := 1; i < n; i++ {
		edges := uint32(len(g.from) / n * i)
		at, _ := slices.BinarySearch(g.start, edges)
		parts = append(parts, min(max(at, parts[i-1]), g.Len()))
	}
	return append(parts, g.Len())
}

func (w *Weights) medianRoot() uint64 {
	mass := make([]uint64, len(w.roots))
	for i, r := range w.roots {
		mass[i] = w.mass[r.node]
	}
	slices.Sort(mass)
	return mass[(len(mass)-1)/2]
}

// Graph is what the weights are about.
func (w *Weights) Graph() *Graph { return w.graph }

// Rater is the identity behind an address and its weight, 0 to 1.
func (w *Weights) Rater(a common.Address) (Node, Fixed) {
	n := w.graph.Node(a)
	return n, w.weight(n)
}

func (w *Weights) weight(n Node) Fixed {
	if n == NoNode {
		return 0
	}
	return Fixed(w.share[n]) << 1
}

// vouching is 1 for an identity with a rater's full weight, 0 for one with a
// thousandth of it or less when decades is 3, and between them by the logarithm.
func (w *Weights) vouching(n Node, decades int) Fixed {
	if n == NoNode || w.tau == 0 || w.mass[n] == 0 {
		return 0
	}
	logs := log2Ratio(w.mass[n], w.tau).div(Int(10).log2())
	return bounded(One+logs.div(Int(decades)), 0)
}

// rankNodes finds the shortest way from a root to everyone. Among equally short ones
// each node begins to look at another place, so that ways do not meet needlessly.
func (w *Weights) rankNodes() {
	w.ways = make([]way, w.graph.Len())
	for i := range w.ways {
		w.ways[i] = way{NoNode, unranked}
	}
	for _, r := range w.roots {
		w.ways[r.node].rank = 0
	}
	parts := w.graph.parts(runtime.GOMAXPROCS(0))
	for rank, more := uint16(1), len(w.roots) > 0; more && rank < unranked; rank++ {
		var group sync.WaitGroup
		for i := range len(parts) - 1 {
			group.Go(func() { w.seekVouchers(rank-1, parts[i], parts[i+1]) })
		}
		group.Wait()
		more = w.rankFound(rank)
	}
}

// seekVouchers finds, for nodes without a rank from low to below high, one who vouches
// for them and has this rank. Ranks only change between the searches.
func (w *Weights) seekVouchers(rank uint16, low, high int) {
	for n := low; n < high; n++ {
		if w.ways[n].rank != unranked {
			continue
		}
		givers := w.graph.givers(Node(n))
		if len(givers) == 0 {
			continue
		}
		first := n % len(givers)
		if w.ways[n].voucher = w.ranked(givers[first:], rank); w.ways[n].voucher == NoNode {
			w.ways[n].voucher = w.ranked(givers[:first], rank)
		}
	}
}

// ranked is the first with this rank.
func (w *Weights) ranked(nodes []Node, rank uint16) Node {
	for _, n := range nodes {
		if w.ways[n].rank == rank {
			return n
		}
	}
	return NoNode
}

func (w *Weights) rankFound(rank uint16) (found bool) {
	for n := range w.ways {
		if v := &w.ways[n]; v.voucher != NoNode && v.rank == unranked {
			v.rank, found = rank, true
		}
	}
	return found
}
