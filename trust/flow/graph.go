package flow

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
)

// Node numbers an identity of a Graph: the addresses that are known to belong together.
type Node uint32

// NoNode is an address that a graph does not know: nobody vouches for it.
const NoNode = ^Node(0)

// Graph holds who vouches for whom on one chain. It does not change once built and is
// safe for concurrent use.
type Graph struct {
	addresses Addresses
	nodes     []Node                  // by number of the address, NoNode for one that is no part of the graph
	extra     map[common.Address]Node // in addition to those of nodes, which graphs share
	tops      []uint32                // by node, the number of its lowest address
	extras    []common.Address        // addresses of the nodes after those of tops
	spoke     []bool                  // by node: it rated somebody; shorter where extra ones follow
	// The other addresses of those nodes that have any, in no particular order.
	aliases map[Node][]common.Address
	// In-edges of node v are edges[start[v]:start[v+1]], ordered by giver.
	start []uint32
	edges []inEdge
	given []uint64 // by node: the sum of the weights of its praise, units of 2^-16
	// blocks are the same edges as the walk reads them, which take as much memory; nil before the first walk and after
	// FreeWalk. Graphs of Personal share them.
	blocks *atomic.Pointer[edgeBlocks]
}

// Len returns the number of identities.
func (g *Graph) Len() int { return len(g.tops) + len(g.extras) }

// Edges returns the number of pairs of which one vouches for the other.
func (g *Graph) Edges() int { return len(g.edges) }

// Node returns the identity of an address; NoNode when the graph does not know it.
func (g *Graph) Node(a common.Address) Node {
	if n, known := g.addresses.Find(a); known && g.nodes[n] != NoNode {
		return g.nodes[n]
	}
	if n, ok := g.extra[a]; ok {
		return n
	}
	return NoNode
}

// Nodes returns the identities of the addresses that the builder knew from the start, by their numbers, and then those
// of others. The caller MUST NOT change them.
func (g *Graph) Nodes() []Node { return g.nodes }

// Spoke reports whether an identity rated anybody, well or badly, in terms that count.
func (g *Graph) Spoke(n Node) bool { return int(n) < len(g.spoke) && g.spoke[n] }

// Name returns the lowest address of an identity, by which it is shown.
func (g *Graph) Name(n Node) common.Address {
	if int(n) < len(g.tops) {
		return g.addresses.At(g.tops[n])
	}
	return g.extras[int(n)-len(g.tops)]
}

// Identity returns the name of an address's identity: the address itself when the graph
// does not know it.
func (g *Graph) Identity(a common.Address) common.Address {
	if n := g.Node(a); n != NoNode {
		return g.Name(n)
	}
	return a
}

// Members returns all addresses of the identity that an address belongs to.
func (g *Graph) Members(a common.Address) []common.Address {
	n := g.Node(a)
	if n == NoNode {
		return []common.Address{a}
	}
	return append([]common.Address{g.Name(n)}, g.aliases[n]...)
}

// in are the edges to n.
func (g *Graph) in(n Node) []inEdge { return g.edges[g.start[n]:g.start[n+1]] }

// GraphBuilder collects identities and edges in any order; the graph does not depend
// on it. It is not safe for concurrent use.
type GraphBuilder struct {
	ids   Addresses
	up    []uint32 // union-find: the parent, itself at the top
	uses  []use    // by number
	edges []Edge
	lists []EdgeList // more edges
}

// use is what an address is to a graph; 0 for one that is no part of it.
type use uint8

const (
	isPart use = 1 << iota
	isRater
)

// Edge is one identity's trust in another: From and To are numbers of Add, Weight is in units of 2^-16: see EdgeWeight.
type Edge struct{ From, To, Weight uint32 }

// EdgeWeight converts a weight, above 0 to 1, to that of an Edge. An edge of weight 0 MUST NOT be added.
func EdgeWeight(weight fixed.Fixed) uint32 {
	return uint32(fixed.Clamp(weight, 0) >> (fixedBits - weightBits))
}

// NewGraphBuilder returns an empty builder.
func NewGraphBuilder() *GraphBuilder { return NewGraphBuilderOf(&Addresses{}) }

// NewGraphBuilderOf returns a builder that knows some addresses by their numbers, so that millions need not be looked
// up. They become part of the graph by Use or Add.
func NewGraphBuilderOf(known *Addresses) *GraphBuilder {
	b := &GraphBuilder{ids: known.Clone(), up: make([]uint32, known.Len()), uses: make([]use, known.Len())}
	for n := range b.up {
		b.up[n] = uint32(n)
	}
	return b
}

// Add makes an address part of the graph and returns its number for Rates, Link and Vouch.
func (b *GraphBuilder) Add(a common.Address) uint32 {
	id := b.ids.Add(a)
	if int(id) == len(b.up) {
		b.up, b.uses = append(b.up, id), append(b.uses, 0)
	}
	b.Use(id)
	return id
}

// Use is Add for an address that is known by its number.
func (b *GraphBuilder) Use(id uint32) { b.uses[id] |= isPart }

// Rates records that an address rated somebody, so that Spoke reports it even when no edge follows.
func (b *GraphBuilder) Rates(id uint32) { b.uses[id] |= isPart | isRater }

// Link makes two addresses one identity. Both must have agreed to it on chain, or
// an operator vouches for it: an address that could link itself to another would take its weight.
func (b *GraphBuilder) Link(x, y uint32) {
	x, y = b.top(x), b.top(y)
	if b.ids.At(x).Cmp(b.ids.At(y)) > 0 {
		x, y = y, x
	}
	b.up[y] = x // the lowest address stays on top
}

// Linked reports whether two addresses are one identity so far. An address that the builder does not know is one by
// itself.
func (b *GraphBuilder) Linked(x, y common.Address) bool {
	i, known := b.ids.Find(x)
	j, others := b.ids.Find(y)
	return x == y || known && others && b.top(i) == b.top(j)
}

// top is the representative of an identity in the union-find forest.
func (b *GraphBuilder) top(x uint32) uint32 {
	for b.up[x] != x {
		b.up[x] = b.up[b.up[x]]
		x = b.up[x]
	}
	return x
}

// Vouch says that one address trusts another by weight, above 0 to 1. Of several
// edges between two identities the heaviest counts; an identity's edge to itself does not.
func (b *GraphBuilder) Vouch(from, to uint32, weight fixed.Fixed) {
	if w := EdgeWeight(weight); w > 0 {
		b.edges = append(b.edges, Edge{from, to, w})
	}
}

// VouchAll is Vouch for the edges of all lists that NewEdgeLists returned. It is called once, and the builder keeps and
// changes the lists. Those that are in order of the names of the receivers, one list after the other, are built without
// a copy: there may be ten million edges.
func (b *GraphBuilder) VouchAll(lists []EdgeList) { b.lists = lists }

// Build returns the graph and empties the builder. Numbers that Add returned before MUST not be used
// afterwards.
func (b *GraphBuilder) Build() *Graph {
	defer func() { *b = *NewGraphBuilder() }()
	tops := b.tops()
	nodes := b.number(tops)
	g := &Graph{addresses: b.ids, nodes: nodes, tops: tops, aliases: map[Node][]common.Address{},
		spoke: make([]bool, len(tops))}
	for id, n := range nodes {
		if n == NoNode {
			continue
		}
		g.spoke[n] = g.spoke[n] || b.uses[id]&isRater != 0
		if tops[n] != uint32(id) {
			g.aliases[n] = append(g.aliases[n], b.ids.At(uint32(id)))
		}
	}
	single, lists := b.edges, b.lists
	b.up, b.uses, b.edges, b.lists = nil, nil, nil, nil
	g.connect(sortEdges(lists, single, nodes, len(tops)))
	g.blocks = new(atomic.Pointer[edgeBlocks])
	return g
}

// number gives the node of each number, of the tops in order.
func (b *GraphBuilder) number(tops []uint32) []Node {
	nodes := make([]Node, len(b.up))
	for id := range nodes {
		nodes[id] = NoNode
	}
	for n, id := range tops {
		nodes[id] = Node(n)
	}
	for id := range nodes {
		if b.uses[id] != 0 {
			nodes[id] = nodes[b.top(uint32(id))]
		}
	}
	return nodes
}

// tops returns the top of each identity by address.
func (b *GraphBuilder) tops() []uint32 {
	tops := make([]uint32, 0, len(b.up))
	for _, id := range b.ids.Order() {
		if b.uses[id] != 0 && b.top(id) == id {
			tops = append(tops, id)
		}
	}
	return tops
}

// Root is an identity that is trusted by configuration.
type Root struct {
	Address common.Address
	Weight  fixed.Fixed // above 0; only the ratio between roots counts
}

// rootShares divides the whole among the roots' identities, in units of 2^-32; none
// has more than most while there are enough of them to hold the rest.
func rootShares(g *Graph, roots []Root, most fixed.Fixed) []rootShare {
	weights := map[Node]fixed.Fixed{}
	for _, r := range roots {
		if n := g.Node(r.Address); n != NoNode && r.Weight > weights[n] {
			weights[n] = r.Weight
		}
	}
	out := make([]rootShare, 0, len(weights))
	for n, w := range weights {
		out = append(out, rootShare{n, w})
	}
	slices.SortFunc(out, func(a, b rootShare) int { return cmp.Compare(a.node, b.node) })
	capShares(out, max(most, fixed.Ratio(1, int64(max(1, len(out))))+1))
	return out
}

type rootShare struct {
	node  Node
	share fixed.Fixed
}

// capShares turns weights into shares of 1 of which none is above most. What is cut
// off the heavy goes to the others in proportion, which may make others heavy.
func capShares(roots []rootShare, most fixed.Fixed) {
	capped := make([]bool, len(roots))
	weights := make([]fixed.Fixed, len(roots))
	for i, r := range roots {
		weights[i] = r.share
	}
	for range len(roots) + 1 {
		rest, total := fixed.One, fixed.Fixed(0)
		for i := range roots {
			if capped[i] {
				rest -= most
			} else {
				total += weights[i]
			}
		}
		again := false
		for i := range roots {
			if capped[i] {
				continue
			}
			roots[i].share = rest.Scaled(int64(weights[i]), int64(total))
			if roots[i].share > most {
				roots[i].share, capped[i], again = most, true, true
			}
		}
		if !again {
			return
		}
	}
}

// with is the graph with addresses that it does not know, as identities of their own:
// what a walk by the graph built with them would see.
func (g *Graph) with(addresses []common.Address) *Graph {
	out := *g
	out.extra = map[common.Address]Node{}
	// The first addition copies the lists, which g shares with other graphs: they have a number for each node.
	out.extras, out.start, out.given = slices.Clip(g.extras), slices.Clip(g.start), slices.Clip(g.given)
	for _, a := range addresses {
		if out.Node(a) != NoNode {
			continue
		}
		out.extra[a] = Node(out.Len())
		out.extras = append(out.extras, a)
		out.start = append(out.start, out.start[len(out.start)-1])
		out.given = append(out.given, 0)
	}
	return &out
}

// Size returns about how many bytes of memory the graph takes.
func (g *Graph) Size() int64 {
	return g.addresses.Size() + int64(len(g.nodes))*4 + int64(len(g.aliases))*96 + int64(g.Len())*17 +
		int64(g.Edges())*16
}

// Personal is Walk for roots that the graph need not know: a caller may trust addresses that never
// rated anybody.
func (g *Graph) Personal(roots []Root, p Params) *Weights {
	addresses := make([]common.Address, len(roots))
	for i, r := range roots {
		addresses[i] = r.Address
	}
	return g.with(addresses).Walk(roots, p)
}
