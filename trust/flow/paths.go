package flow

import "repute/trust/fixed"

// full is what one identity may pass, in the terms of amounts: units of 2^-shareBits.
const full = 1 << shareBits

// PathFinder measures how much trust reaches groups of raters from roots by ways that are independent: the value of a
// maximum flow in which no identity passes more than one unit, roots included, no rater ends more
// than its weight, and no group more than the weight of its strongest member. So whatever a
// compromised root or rater does, it brings one unit, and raters of little weight bring little however
// many they are. It reuses its memory between flows, so it is for one goroutine at a time.
//
// Most raters are served by the shortest way from a root, which is known for everyone
// beforehand; where these ways are full, Flow searches for others.
type PathFinder struct {
	w       *Weights
	turn    uint32 // of flows
	loads   []load
	touched []Node // with a load of this flow
	without Node
	most    uint32 // that one identity passes in this flow, in the terms of amounts
	groups  []group
	value   uint64
	residual
}

// load is what passes a node in the flow of a turn.
type load struct{ turn, used uint32 }

// group is one rater, which may have several identities. left is what it may still be served, ways
// what Add served by shortest ways.
type group struct {
	members []Node
	left    uint32
	ways    []way
}

// way is an amount that reaches a rater by the shortest way.
type way struct {
	rater  Node
	amount uint32
}

// NewPathFinder returns a finder of paths in the graph of w.
func NewPathFinder(w *Weights) *PathFinder {
	return &PathFinder{w: w, loads: make([]load, w.graph.Len()), without: NoNode, most: full}
}

// Begin starts a new flow. Nothing passes through the identity without, which may be NoNode.
func (f *PathFinder) Begin(without Node) { f.BeginLimited(without, fixed.One) }

// BeginLimited is Begin of a flow in which no identity passes more than most, which is at most 1.
func (f *PathFinder) BeginLimited(without Node, most fixed.Fixed) {
	if f.turn++; f.turn == 0 { // what is of four billion flows ago would look new
		clear(f.loads)
		clear(f.places)
		f.turn = 1
	}
	f.without, f.most, f.value = without, uint32(min(most, fixed.One)>>(fixedBits-shareBits)), 0
	f.touched, f.groups = f.touched[:0], f.groups[:0]
}

// Add adds a group of raters, each of which is in one group only, and serves it by shortest ways as far as they have
// room. It returns the value of the flow so far. members must stay as they are until the next Begin.
func (f *PathFinder) Add(members []Node) fixed.Fixed { return f.AddLimited(members, fixed.One) }

// AddLimited is Add of a group that ends no more than most, which is at most 1.
func (f *PathFinder) AddLimited(members []Node, most fixed.Fixed) fixed.Fixed {
	if len(f.groups) < cap(f.groups) {
		f.groups = f.groups[:len(f.groups)+1]
	} else {
		f.groups = append(f.groups, group{})
	}
	g := &f.groups[len(f.groups)-1]
	g.members, g.left, g.ways = members, 0, g.ways[:0]
	for _, n := range members {
		g.left = max(g.left, f.w.nodes[n].share)
	}
	g.left = min(g.left, uint32(min(most, fixed.One)>>(fixedBits-shareBits)))
	for _, n := range members {
		if amount := f.room(n, min(g.left, f.w.nodes[n].share)); amount > 0 {
			f.fill(n, amount)
			g.left -= amount
			g.ways = append(g.ways, way{n, amount})
			f.value += uint64(amount)
		}
	}
	return f.Value()
}

// Value is the value of the flow so far.
func (f *PathFinder) Value() fixed.Fixed { return fixed.Fixed(f.value << (fixedBits - shareBits)) }

// used is what passes a node.
func (f *PathFinder) used(n Node) uint32 {
	if l := &f.loads[n]; l.turn == f.turn {
		return l.used
	}
	return 0
}

// room is how much of an amount fits the shortest way to n.
func (f *PathFinder) room(n Node, amount uint32) uint32 {
	for at := n; amount > 0; {
		if at == NoNode || at == f.without {
			return 0
		}
		amount = min(amount, f.most-f.used(at))
		voucher := f.w.nodes[at].voucher
		if voucher == at {
			break
		}
		at = voucher
	}
	return amount
}

// fill sends an amount along the shortest way to n.
func (f *PathFinder) fill(n Node, amount uint32) {
	for at := n; ; {
		f.pass(at, amount)
		voucher := f.w.nodes[at].voucher
		if voucher == at {
			return
		}
		at = voucher
	}
}

// pass adds to what passes a node; amounts may wrap around to take something away.
func (f *PathFinder) pass(n Node, amount uint32) {
	l := &f.loads[n]
	if l.turn != f.turn {
		*l = load{turn: f.turn}
		f.touched = append(f.touched, n)
	}
	l.used += amount
}

// Flow returns the value of a maximum flow to the groups that were added, or any value of at least limit.
func (f *PathFinder) Flow(limit fixed.Fixed) fixed.Fixed {
	wanted := uint64(0)
	for i := range f.groups {
		wanted += uint64(f.groups[i].left)
	}
	if wanted == 0 || f.Value() >= limit {
		return f.Value()
	}
	f.prepare()
	for f.Value() < limit && f.augment() {
	}
	return f.Value()
}

// residual is what the search for more ways needs beside loads: the flow in each edge, and marks.
//
// States of the search are the entry and the exit of each node, which are apart because a node passes a limited
// amount, and the groups. It goes backwards, from groups to the roots: from a state to all from
// which more can come to it, also by taking back what goes elsewhere now.
type residual struct {
	places []place
	edges  []flowEdge
	mark   []uint32 // by state: the search that reached it
	came   []uint32 // by state: the one before, origin for the first
	search uint32
	found  int              // searches of this flow that found more
	queues [queues][]uint32 // states to look at, by rank
	lowest int              // of queues: none below has any
	steps  []uint32
}

// place is what a node has in the flow of a turn.
type place struct {
	turn   uint32
	edges  int32  // the first of residual.edges that leave it; none: -1
	group  int32  // of a rater; none: -1
	served uint32 // what its group gets from it
}

// flowEdge is what goes from one node to another.
type flowEdge struct {
	to     Node
	amount uint32
	next   int32 // of the edges that leave the same node
}

// queues is how many ranks are told apart: most of what matters is near the roots.
const queues = 16

const origin = ^uint32(0)

// Numbers of states.
func entryOf(n Node) uint32 { return uint32(n) * 2 }

// exitOf is the state of what leaves a node.
func exitOf(n Node) uint32 { return uint32(n)*2 + 1 }

// groupOf is the state of group i.
func (f *PathFinder) groupOf(i int) uint32 { return uint32(2*f.w.graph.Len() + i) }

// place of a node in this flow.
func (f *PathFinder) place(n Node) *place {
	p := &f.places[n]
	if p.turn != f.turn {
		*p = place{turn: f.turn, edges: -1, group: -1}
	}
	return p
}

// prepare turns what Add found into flow along edges.
func (f *PathFinder) prepare() {
	nodes := f.w.graph.Len()
	if f.places == nil {
		f.places = make([]place, nodes)
	}
	if states := 2*nodes + len(f.groups); len(f.mark) < states {
		f.mark, f.came, f.search = make([]uint32, states), make([]uint32, states), 0
	}
	f.edges, f.found = f.edges[:0], 0
	for _, n := range f.touched {
		if voucher := f.w.nodes[n].voucher; voucher != n {
			f.send(voucher, n, f.used(n))
		}
	}
	for i := range f.groups {
		g := &f.groups[i]
		for _, n := range g.members {
			f.place(n).group = int32(i)
		}
		for _, w := range g.ways {
			f.place(w.rater).served = w.amount
		}
	}
}

// send adds to what goes from one node to another.
func (f *PathFinder) send(from, to Node, amount uint32) {
	p := f.place(from)
	for at := p.edges; at >= 0; at = f.edges[at].next {
		if f.edges[at].to == to {
			f.edges[at].amount += amount
			return
		}
	}
	f.edges = append(f.edges, flowEdge{to, amount, p.edges})
	p.edges = int32(len(f.edges) - 1)
}

// sent is what goes from one node to another.
func (f *PathFinder) sent(from, to Node) uint32 {
	for at := f.place(from).edges; at >= 0; at = f.edges[at].next {
		if f.edges[at].to == to {
			return f.edges[at].amount
		}
	}
	return 0
}

// augment searches a way for more and sends as much as it takes. False: there is none.
func (f *PathFinder) augment() bool {
	if f.search++; f.search == 0 {
		clear(f.mark)
		f.search = 1
	}
	for i := range f.queues {
		f.queues[i] = f.queues[i][:0]
	}
	f.lowest = queues
	for i := range f.groups {
		if f.groups[i].left > 0 {
			f.reach(f.groupOf(i), origin)
		}
	}
	for state, ok := f.nearest(); ok; state, ok = f.nearest() {
		if f.expand(state) {
			f.found++
			f.carry(state)
			return true
		}
	}
	return false
}

// rank is the distance of a state from the roots.
func (f *PathFinder) rank(state uint32) int {
	if int(state) >= 2*f.w.graph.Len() {
		return 0
	}
	return int(f.w.ranks[state/2])
}

// manySearches of one flow are unusual. From there on states are taken in the order in which they were found, which
// bounds the number of searches by the size of the graph whatever the amounts are.
const manySearches = 1000

// reach queues a state that this search has not seen, unless no root leads there.
func (f *PathFinder) reach(state, before uint32) {
	rank := f.rank(state)
	if f.mark[state] == f.search || rank == unranked || f.isWithout(state) {
		return
	}
	f.mark[state], f.came[state] = f.search, before
	q := min(rank, queues-1)
	if f.found > manySearches {
		q = 0
	}
	f.queues[q] = append(f.queues[q], state)
	f.lowest = min(f.lowest, q)
}

// isWithout reports whether a state is one of the node that nothing passes.
func (f *PathFinder) isWithout(state uint32) bool {
	return f.without != NoNode && state/2 == uint32(f.without)
}

// nearest takes a state next to the roots out of the queues: in a large graph it is a few
// steps to a free root that way, and thousands in the order of the search.
func (f *PathFinder) nearest() (state uint32, ok bool) {
	for ; f.lowest < queues; f.lowest++ {
		q := f.queues[f.lowest]
		if len(q) == 0 {
			continue
		}
		if f.found > manySearches {
			f.queues[0] = q[1:]
			return q[0], true
		}
		f.queues[f.lowest] = q[:len(q)-1]
		return q[len(q)-1], true
	}
	return 0, false
}

// expand reaches the states from which more can come to a state. True: the state is the entry of a
// root.
func (f *PathFinder) expand(state uint32) bool {
	if i := int(state) - 2*f.w.graph.Len(); i >= 0 {
		for _, n := range f.groups[i].members {
			if f.place(n).served < f.w.nodes[n].share {
				f.reach(exitOf(n), state)
			}
		}
		return false
	}
	n := Node(state / 2)
	if state == entryOf(n) {
		return f.expandEntry(n)
	}
	if f.used(n) < f.most {
		f.reach(entryOf(n), state)
	}
	p := f.place(n)
	for at := p.edges; at >= 0; at = f.edges[at].next {
		if f.edges[at].amount > 0 { // the other may get it from elsewhere
			f.reach(entryOf(f.edges[at].to), state)
		}
	}
	if p.served > 0 { // so may its group
		f.reach(f.groupOf(int(p.group)), state)
	}
	return false
}

// expandEntry is expand for the entry of a node: of what those who vouch for it give, and of what
// passes it already.
func (f *PathFinder) expandEntry(n Node) bool {
	if f.w.ranks[n] == 0 {
		return true
	}
	if f.used(n) > 0 {
		f.reach(exitOf(n), entryOf(n))
	}
	for _, e := range f.w.graph.in(n) {
		f.reach(exitOf(Node(e.from)), entryOf(n))
	}
	return false
}

// carry sends what fits along the search that ended at the entry of a root.
func (f *PathFinder) carry(end uint32) {
	f.steps = append(f.steps[:0], end)
	amount := uint32(full)
	for at := end; f.came[at] != origin; at = f.came[at] {
		f.steps = append(f.steps, f.came[at])
		amount = min(amount, f.fits(at, f.came[at]))
	}
	first := &f.groups[int(f.steps[len(f.steps)-1])-2*f.w.graph.Len()]
	amount = min(amount, first.left)
	for i := range len(f.steps) - 1 {
		f.move(f.steps[i], f.steps[i+1], amount)
	}
	first.left -= amount
	f.value += uint64(amount)
}

// fits is how much more can go from one state to the next.
func (f *PathFinder) fits(from, to uint32) uint32 {
	groups := uint32(2 * f.w.graph.Len())
	a, b := Node(from/2), Node(to/2)
	switch {
	case to >= groups:
		return f.w.nodes[a].share - f.place(a).served
	case from >= groups:
		return f.place(b).served
	case a == b && from == entryOf(a):
		return f.most - f.used(a)
	case a == b:
		return f.used(a)
	case from == exitOf(a):
		return full
	}
	return f.sent(b, a)
}

// move lets an amount go from one state to the next.
func (f *PathFinder) move(from, to, amount uint32) {
	groups := uint32(2 * f.w.graph.Len())
	a, b := Node(from/2), Node(to/2)
	switch {
	case to >= groups:
		f.place(a).served += amount
	case from >= groups:
		f.place(b).served -= amount
	case a == b && from == entryOf(a):
		f.pass(a, amount)
	case a == b:
		f.pass(a, -amount)
	case from == exitOf(a):
		f.send(a, b, amount)
	default:
		f.send(b, a, -amount)
	}
}
