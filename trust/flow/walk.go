package flow

import (
	"math/bits"
	"runtime"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
)

// whole is all trust there is, in the walk's units.
const whole = 1 << 60

// Binary digits after the point of a weight while it spreads, which is a sum of many small parts; of vouched.share, of
// a Fixed, and of the weight of an edge.
const (
	unitBits   = 40
	shareBits  = 31
	fixedBits  = 32
	weightBits = 16
)

// Params govern how trust spreads. They are part of the parameters of a score.
type Params struct {
	Restart      fixed.Fixed `json:"restart"`      // share of the mass that starts again at the roots in each round
	Iterations   int         `json:"iterations"`   // rounds for mass, always all of them; at most as many for weights
	FullShare    fixed.Fixed `json:"fullShare"`    // share of the median root's mass that vouches for an identity fully
	MaxRootShare fixed.Fixed `json:"maxRootShare"` // most one root may have of the restart
	// RootGives is the weight that a root hands out, in units of a rater of full weight, divided among all it praises.
	RootGives fixed.Fixed `json:"rootGives"`
	// PassOn is the part of what another identity has received that it hands out.
	PassOn fixed.Fixed `json:"passOn"`
	// RootVouch and Vouch are the most that one praise of 1 by a root, or by another identity, gives.
	RootVouch fixed.Fixed `json:"rootVouch"`
	Vouch     fixed.Fixed `json:"vouch"`
	// FullOpinion is the opinion, above 0 to 1, from which on praise vouches as much as an opinion of 1.
	FullOpinion fixed.Fixed `json:"fullOpinion"`
}

// Edge is the weight of praise as an edge of the graph, 0 to 1: of an opinion above 0 and the evidence that it gives at
// full weight, which ages.
func (p *Params) Edge(opinion, strength fixed.Fixed) fixed.Fixed {
	return min(fixed.One, opinion.Div(p.FullOpinion)).Mul(strength)
}

// Weights has the trust that reaches each identity of a graph from a set of roots. It does not change and is safe for
// concurrent use.
//
// There are two measures. The mass of an identity is its share of all trust, even when a single identity praises it.
// Its weight, by which its opinions count, needs several: one praise gives at most Params.Vouch, and an identity passes
// on Params.PassOn of what it has received, divided among all it praises. So identities that praise each other, however
// many, have together no more than 1/(1-PassOn) of what others give them.
type Weights struct {
	graph    *Graph
	mass     []uint64 // by node, units of 2^-60; all of them together are at most 1
	received []uint64 // weight by node before it ends at 1, units of 2^-unitBits
	tau      uint64   // the mass of who is vouched for fully
	nodes    []vouched
	ranks    []uint16 // by node: how many steps lead to it from a root
	roots    []rootShare

	rules      SourceRules
	credits    map[Node]credited // weight that sources grant: see WithCredits
	given      map[Node][]Credit // that WithCredits was called with
	isCredited []uint64          // by node, a bit each: it is in credits

	logTau, logTen fixed.Fixed // binary logarithms of tau and of ten
}

// vouched is what scores ask of a node most: its weight in units of 2^-31, and who vouches for it
// on the shortest way from a root: itself for a root, NoNode for those no root leads to. Both are
// side by side, as memory is slow.
type vouched struct {
	share   uint32
	voucher Node
}

// unranked is the rank of those no root leads to.
const unranked = 1<<16 - 1

// Walk spreads trust from the roots, in the two ways of Weights. Mass: in each of
// Params.Iterations rounds every identity passes on what it has, but for the restart share, to
// those it vouches for; what is not passed on starts again at the roots. Weight: every identity
// hands out a part of what it has received, no praise more than its bound. Roots the graph does
// not know are left out; without roots nobody has weight.
func (g *Graph) Walk(roots []Root, p Params) *Weights {
	w := &Weights{graph: g, roots: rootShares(g, roots, p.MaxRootShare)}
	w.mass, w.received = make([]uint64, g.Len()), make([]uint64, g.Len())
	w.rankNodes()
	if len(w.roots) == 0 {
		return w
	}
	w.restart(w.mass, whole)
	blocks := g.edgeBlocks()
	given, next := blocks.givers(g.Len()), make([]uint64, g.Len())
	keep := uint64(fixed.One - p.Restart)
	for range p.Iterations {
		passed := w.step(blocks, given, next, func(n int) uint64 { return times(w.mass[n], keep) })
		w.restart(next, whole-passed)
		w.mass, next = next, w.mass
	}
	w.tau = max(1, times(w.medianRoot(), uint64(p.FullShare)))
	w.logTau, w.logTen = fixed.Log2Whole(w.tau), fixed.Int(10).Log2()
	w.spreadWeight(p, blocks, given, next)
	return w
}

// spreadWeight fills received and the weights of nodes. No round takes anything away from the one
// before, and it ends when nothing changes.
func (w *Weights) spreadWeight(p Params, blocks *edgeBlocks, given, next []uint64) {
	own, gives := w.rootWeights(p)
	for range p.Iterations {
		w.step(blocks, given, next, func(n int) uint64 {
			total := w.graph.given[n] << (unitBits - weightBits)
			if w.ranks[n] == 0 {
				return min(gives[Node(n)], times(total, uint64(p.RootVouch)))
			}
			return min(times(w.received[n], uint64(p.PassOn)), times(total, uint64(p.Vouch)))
		})
		same := slices.Equal(w.received, next)
		w.received, next = next, w.received
		if same {
			break
		}
	}
	const half = 1 << (unitBits - shareBits - 1) // shares of a giver are rounded down: one praise of 1 must give 1
	for n, got := range w.received {
		w.nodes[n].share = uint32(min(got+half, 1<<unitBits) >> (unitBits - shareBits))
	}
	for n, weight := range own {
		w.nodes[n].share = max(w.nodes[n].share, uint32(weight>>(unitBits-shareBits)))
	}
}

// rootWeights are the weight of each root and what it gives, in units of 2^-unitBits: roots of the
// median share of the restart or more have full weight.
func (w *Weights) rootWeights(p Params) (own, gives map[Node]uint64) {
	own, gives = map[Node]uint64{}, map[Node]uint64{}
	shares := make([]fixed.Fixed, len(w.roots))
	for i, r := range w.roots {
		shares[i] = r.share
	}
	slices.Sort(shares)
	median := shares[(len(shares)-1)/2]
	for _, r := range w.roots {
		weight := min(fixed.One, r.share.Div(max(1, median)))
		own[r.node] = uint64(weight) << (unitBits - fixedBits)
		gives[r.node] = uint64(p.RootGives.Mul(weight)) << (unitBits - fixedBits)
	}
	return own, gives
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

// step fills next with what each identity receives when each gives what gives says, and returns the sum.
func (w *Weights) step(blocks *edgeBlocks, given, next []uint64, gives func(node int) uint64) uint64 {
	Parallel(len(w.mass), func(low, high int) {
		for n := low; n < high; n++ {
			given[n] = gives(n)
		}
	})
	return blocks.run(given, next)
}

// parts cuts the nodes into runs of about the same number of edges.
func (g *Graph) parts(n int) []int {
	parts := []int{0}
	for i := 1; i < n; i++ {
		edges := uint32(len(g.edges) / n * i)
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

// IsRoot reports whether a node is a root's.
func (w *Weights) IsRoot(n Node) bool { return n != NoNode && w.ranks[n] == 0 }

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

// Vouching returns how far an identity is vouched for: 1 for full mass, 0 for a thousandth of that or
// less when decades is 3, and between them by the logarithm.
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
		Parallel(len(parts)-1, func(low, high int) { w.seekVouchers(rank-1, parts[low], parts[high]) })
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
		givers := w.graph.in(Node(n))
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

// ranked is the first giver of edges with this rank.
func (w *Weights) ranked(edges []inEdge, rank uint16) Node {
	for _, e := range edges {
		if n := Node(e.from); w.ranks[n] == rank {
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
func (w *Weights) Size() int64 { return int64(w.graph.Len())*46 + int64(len(w.credits))*128 + 256 }
