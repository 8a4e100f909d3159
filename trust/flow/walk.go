package flow

import (
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
)

// whole is all trust there is, in the walk's units.
const whole = 1 << 60

// Params govern how trust spreads. They are part of the parameters of a score.
type Params struct {
	Restart      fixed.Fixed `json:"restart"`      // share that starts again at the roots in each round
	Iterations   int         `json:"iterations"`   // rounds, always all of them
	FullShare    fixed.Fixed `json:"fullShare"`    // a rater with this share of the median root's trust has full weight
	MaxRootShare fixed.Fixed `json:"maxRootShare"` // most one root may have of the restart
}

// Weights says how much each identity of a graph is vouched for by a set of roots. It
// does not change and is safe for concurrent use.
type Weights struct {
	graph *Graph
	mass  []uint64 // by node, units of 2^-60; all of them together are at most 1
	tau   uint64   // the mass of a rater of full weight
	nodes []vouched
	ranks []uint16 // by node: how many steps lead to it from a root
	roots []rootShare

	logTau, logTen fixed.Fixed // binary logarithms of tau and of ten
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

// Walk spreads trust from the roots: in each of WalkParams.Iterations rounds every
// identity passes on what it has, but for the restart share, to those it vouches for;
// what is not passed on starts again at the roots. Roots the graph does not know are
// left out; without roots nobody has weight.
func (g *Graph) Walk(roots []Root, p Params) *Weights {
	w := &Weights{graph: g, roots: rootShares(g, roots, p.MaxRootShare)}
	w.mass = make([]uint64, g.Len())
	w.rankNodes()
	if len(w.roots) == 0 {
		return w
	}
	w.restart(w.mass, whole)
	given, next := g.blocks.givers(g.Len()), make([]uint64, g.Len())
	keep := uint64(fixed.One - p.Restart)
	for range p.Iterations {
		passed := w.step(given, next, keep)
		w.restart(next, whole-passed)
		w.mass, next = next, w.mass
	}
	w.tau = max(1, times(w.medianRoot(), uint64(p.FullShare)))
	w.logTau, w.logTen = fixed.Log2Whole(w.tau), fixed.Int(10).Log2()
	for n, m := range w.mass {
		w.nodes[n].share = uint32(w.inTau(m) >> 1)
	}
	return w
}

// inTau is a mass in terms of tau, at most 1.
func (w *Weights) inTau(mass uint64) fixed.Fixed {
	if mass >= w.tau {
		return fixed.One
	}
	return fixed.Fixed(mass).Div(fixed.Fixed(w.tau))
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
	return w.graph.blocks.run(given, next)
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

// Rootless reports whether the graph knows none of the roots, so that nobody has weight.
func (w *Weights) Rootless() bool { return len(w.roots) == 0 }

// Graph returns the graph that was walked.
func (w *Weights) Graph() *Graph { return w.graph }

// Rater returns the identity of an address and its weight, 0 to 1.
func (w *Weights) Rater(a common.Address) (Node, fixed.Fixed) {
	n := w.graph.Node(a)
	return n, w.Weight(n)
}

// Path returns a shortest path from a root to an identity, the root first; nil when there is none.
func (w *Weights) Path(to Node) []common.Address {
	if to == NoNode || w.ranks[to] == unranked {
		return nil
	}
	path := make([]common.Address, w.ranks[to]+1)
	for i := len(path) - 1; i >= 0; i-- {
		path[i] = w.graph.Name(to)
		to = w.nodes[to].voucher
	}
	return path
}

// Weight returns the weight of a node, 0 to 1; 0 for NoNode.
func (w *Weights) Weight(n Node) fixed.Fixed {
	if n == NoNode {
		return 0
	}
	return fixed.Fixed(w.nodes[n].share) << 1
}

// Vouching returns 1 for an identity with a rater's full weight, 0 for one with a
// thousandth of it or less when decades is 3, and between them by the logarithm.
func (w *Weights) Vouching(n Node, decades int) fixed.Fixed {
	if n == NoNode || w.tau == 0 || w.mass[n] == 0 {
		return 0
	}
	if w.mass[n] >= w.tau {
		return fixed.One
	}
	logs := (fixed.Log2Whole(w.mass[n]) - w.logTau).Div(w.logTen)
	return fixed.Clamp(fixed.One+logs.Div(fixed.Int(decades)), 0)
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

// Size returns about how many bytes of memory the weights take without their graph.
func (w *Weights) Size() int64 { return int64(w.graph.Len())*38 + 256 }
