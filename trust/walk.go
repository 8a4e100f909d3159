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
	nodes []vouched
	ranks []uint16 // by node: how many steps lead to it from a root
	roots []rootShare

	logTau, logTen Fixed // binary logarithms of tau and of ten
}

// vouched is what scores ask of a node most: its mass in terms of tau, at most 1, in units of
// 2^-31, and who vouches for it on the shortest way from a root: itself for a root,
// NoNode for those no root leads to. Both are side by side, as memory is slow.
type vouched struct {
	share   uint32
	voucher Node
}

// unranked is the rank of those no root leads to.
const unranked = 1<<16 - 1

// Walk spreads trust from the roots: in each of Params.Walk.Iterations rounds every
// identity passes on what it has, but for the restart share, to those it vouches for;
// what is not passed on starts again at the roots. Roots the graph does not know are
// left out; without roots nobody has weight.
func (g *Graph) Walk(roots []Root, p *Params) *Weights {
	w := &Weights{graph: g, roots: rootShares(g, roots, p.Walk.MaxRootShare)}
	w.mass = make([]uint64, g.Len())
	w.rankNodes()
	if len(w.roots) == 0 {
		return w
	}
	w.restart(w.mass, whole)
	given, next := g.flow.givers(g.Len()), make([]uint64, g.Len())
	keep := uint64(One - p.Walk.Restart)
	for range p.Walk.Iterations {
		passed := w.step(given, next, keep)
		w.restart(next, whole-passed)
		w.mass, next = next, w.mass
	}
	w.tau = max(1, times(w.medianRoot(), uint64(p.Walk.FullShare)))
	w.logTau, w.logTen = log2Whole(w.tau), Int(10).log2()
	for n, m := range w.mass {
		w.nodes[n].share = uint32(w.inTau(m) >> 1)
	}
	return w
}

// inTau is a mass in terms of tau, at most 1.
func (w *Weights) inTau(mass uint64) Fixed {
	if mass >= w.tau {
		return One
	}
	return Fixed(mass).div(Fixed(w.tau))
}

// times is a*b for b in units of 2^-32.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<32 | lo>>32
}

// restart returns a part of the mass to the roots.
func (w *Weights) restart(mass []uint64, rest uint64) {
	for _, r := range w.roots {
		mass[r.node] += times(rest, uint64(r.share))
	}
}

// step fills next with what each identity receives and gives the sum.
func (w *Weights) step(given, next []uint64, keep uint64) uint64 {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for i := range workers {
		low, high := len(w.mass)*i/workers, len(w.mass)*(i+1)/workers
		group.Go(func() {
			for n, m := range w.mass[low:high] {
				given[low+n] = times(m, keep)
			}
		})
	}
	group.Wait()
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

// medianRoot is the mass of the middle root, by which weights are normalized.
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

// weight is the weight of a node, 0 for none.
func (w *Weights) weight(n Node) Fixed {
	if n == NoNode {
		return 0
	}
	return Fixed(w.nodes[n].share) << 1
}

// vouching is 1 for an identity with a rater's full weight, 0 for one with a
// thousandth of it or less when decades is 3, and between them by the logarithm.
func (w *Weights) vouching(n Node, decades int) Fixed {
	if n == NoNode || w.tau == 0 || w.mass[n] == 0 {
		return 0
	}
	if w.mass[n] >= w.tau {
		return One
	}
	logs := (log2Whole(w.mass[n]) - w.logTau).div(w.logTen)
	return bounded(One+logs.div(Int(decades)), 0)
}

// rankNodes finds the shortest way from a root to everyone. Among equally short ones
// each node begins to look at another place, so that ways do not meet needlessly.
func (w *Weights) rankNodes() {
	w.nodes, w.ranks = make([]vouched, w.graph.Len()), make([]uint16, w.graph.Len())
	for n := range w.nodes {
		w.nodes[n].voucher, w.ranks[n] = NoNode, unranked
	}
	for _, r := range w.roots {
		w.nodes[r.node].voucher, w.ranks[r.node] = r.node, 0
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
		if w.ranks[n] != unranked {
			continue
		}
		givers := w.graph.givers(Node(n))
		if len(givers) == 0 {
			continue
		}
		first := n % len(givers)
		voucher := w.ranked(givers[first:], rank)
		if voucher == NoNode {
			voucher = w.ranked(givers[:first], rank)
		}
		w.nodes[n].voucher = voucher
	}
}

// ranked is the first with this rank.
func (w *Weights) ranked(nodes []Node, rank uint16) Node {
	for _, n := range nodes {
		if w.ranks[n] == rank {
			return n
		}
	}
	return NoNode
}

// rankFound gives the nodes that the last step reached their distance from the roots, and reports
// whether there are any.
func (w *Weights) rankFound(rank uint16) (found bool) {
	for n := range w.ranks {
		if w.ranks[n] == unranked && w.nodes[n].voucher != NoNode {
			w.ranks[n], found = rank, true
		}
	}
	return found
}

// Size is about how many bytes of memory the weights take without their graph.
func (w *Weights) Size() int64 { return int64(w.graph.Len())*38 + 256 }
