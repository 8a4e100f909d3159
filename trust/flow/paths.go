package flow

// PathFinder counts vertex-disjoint paths from roots to raters. It reuses its memory
// between counts, so it is for one goroutine at a time.
//
// Most raters are reached by the shortest way from a root, which is known for everyone
// beforehand; where these ways meet, the usual flow decides: every identity is split into
// an entry and an exit of capacity one, and searched backwards, from a rater through
// those who vouch for it to a root.
type PathFinder struct {
	w      *Weights
	taken  []uint64 // a bit for each node that is on a way, or that no path may pass
	marked []Node   // of taken
	starts []start  // of the ways found

	searched // what only augment needs
}

// start is the rater at the end of a way, and its group.
type start struct {
	rater Node
	group int32
}

// searched is the state of a flow that is searched by its residual graph.
type searched struct {
	mark []uint32 // by state: the search that reached it
	came []uint32 // by state: the one before, origin for the first
	turn uint32

	round  uint32
	hops   []hop // by node, of this round only
	groups [][]Node
	served []bool           // groups with a path
	queues [queues][]uint32 // states to look at by rank
	lowest int              // of queues, none below has any
	steps  []uint32
}

// queues is how many ranks are told apart: most of what matters is near the roots.
const queues = 16

// hop is an identity's place on a path.
type hop struct {
	used  uint32 // the round in which it is on a path
	next  Node   // the one it vouches for, towards the rater; NoNode: it is the rater
	root  bool   // the path begins here
	group int32  // of a rater
}

const origin = ^uint32(0)

// NewPathFinder returns a finder of paths in the graph of w.
func NewPathFinder(w *Weights) *PathFinder {
	return &PathFinder{w: w, taken: make([]uint64, w.graph.Len()/64+1)}
}

// Begin starts a new count. No path passes through the identity without, which may be NoNode.
func (f *PathFinder) Begin(without Node) {
	for _, n := range f.marked {
		f.taken[n/64] = 0
	}
	f.marked, f.starts = f.marked[:0], f.starts[:0]
	if without != NoNode {
		f.take(without)
	}
}

// take marks a node as used by paths that were found.
func (f *PathFinder) take(n Node) {
	f.taken[n/64] |= 1 << (n % 64)
	f.marked = append(f.marked, n)
}

// Direct takes the shortest path to a group when it shares no identity with the paths taken before,
// and reports whether it did. Groups are numbered in the order in which they are asked for.
func (f *PathFinder) Direct(members []Node, group int) bool {
	for _, n := range members {
		if f.free(n) {
			f.starts = append(f.starts, start{n, int32(group)})
			for at := n; ; {
				f.take(at)
				voucher := f.w.nodes[at].voucher
				if voucher == at {
					return true
				}
				at = voucher
			}
		}
	}
	return false
}

// free reports whether nobody on the shortest way to n is taken.
func (f *PathFinder) free(n Node) bool {
	if f.w.nodes[n].voucher == NoNode {
		return false
	}
	for {
		if f.taken[n/64]&(1<<(n%64)) != 0 {
			return false
		}
		voucher := f.w.nodes[n].voucher
		if voucher == n {
			return true
		}
		n = voucher
	}
}

// Most finds how many of the groups of raters, each of which Direct was asked for, can be
// reached from roots by paths that share no identity and do not pass through without, up
// to limit. A group has one path, an identity one group.
func (f *PathFinder) Most(groups [][]Node, without Node, limit int) int {
	paths := len(f.starts)
	if limit = min(limit, len(groups), len(f.w.roots)); paths >= limit {
		return paths
	}
	f.prepare(groups)
	for paths < limit && f.augment(without) {
		paths++
	}
	return paths
}

// prepare puts the ways found into hops and tells every rater its group.
func (f *PathFinder) prepare(groups [][]Node) {
	if f.hops == nil {
		n := f.w.graph.Len()
		f.mark, f.came, f.hops = make([]uint32, 2*n), make([]uint32, 2*n), make([]hop, n)
	}
	f.round++
	f.groups, f.served = groups, append(f.served[:0], make([]bool, len(groups))...)
	for i, members := range groups {
		for _, n := range members {
			f.hops[n].group = int32(i)
		}
	}
	for _, s := range f.starts {
		f.served[s.group] = true
		next := NoNode
		for at := s.rater; ; at = f.w.nodes[at].voucher {
			f.place(at, next)
			if f.w.nodes[at].voucher == at {
				f.hops[at].root = true
				break
			}
			next = at
		}
	}
}

// place puts a node on a path, with the node after it.
func (f *PathFinder) place(n, next Node) {
	h := &f.hops[n]
	h.used, h.next, h.root = f.round, next, false
}

// States: the entry of a node, where its path towards the rater leaves it, and its
// exit, from where those who vouch for it are asked.
func entry(n Node) uint32 { return uint32(n) * 2 }

// exit is the outgoing half of a node: each node is split in two, so that at most one path passes
// it.
func exit(n Node) uint32 { return uint32(n)*2 + 1 }

// augment finds room for one more path.
func (f *PathFinder) augment(without Node) bool {
	f.turn++
	for i := range f.queues {
		f.queues[i] = f.queues[i][:0]
	}
	f.lowest = queues
	if without != NoNode {
		f.mark[entry(without)], f.mark[exit(without)] = f.turn, f.turn
	}
	for i, members := range f.groups {
		for _, n := range members {
			if !f.served[i] && f.w.ranks[n] != unranked {
				f.reach(entry(n), origin)
			}
		}
	}
	for state, ok := f.nearest(); ok; state, ok = f.nearest() {
		if f.expand(state) {
			f.store(state)
			return true
		}
	}
	return false
}

// nearest takes a state next to the roots out of the queues: in a large graph it is a few
// steps to a free root that way, and thousands in the order of the search.
func (f *PathFinder) nearest() (state uint32, ok bool) {
	for ; f.lowest < queues; f.lowest++ {
		if q := f.queues[f.lowest]; len(q) > 0 {
			f.queues[f.lowest] = q[:len(q)-1]
			return q[len(q)-1], true
		}
	}
	return 0, false
}

// reach queues a state that this search has not seen, unless no root leads there.
func (f *PathFinder) reach(state, before uint32) {
	if f.mark[state] == f.turn || f.w.ranks[state/2] == unranked {
		return
	}
	f.mark[state], f.came[state] = f.turn, before
	q := min(int(f.w.ranks[state/2]), queues-1)
	f.queues[q] = append(f.queues[q], state)
	f.lowest = min(f.lowest, q)
}

// expand follows what is free from a state. It is true at the exit of a root where no
// path begins yet.
func (f *PathFinder) expand(state uint32) bool {
	n := Node(state / 2)
	h := &f.hops[n]
	used := h.used == f.round
	switch {
	case state == exit(n):
		return f.leave(n, h, used)
	case !used:
		f.reach(exit(n), state)
	case h.next != NoNode:
		f.reach(exit(h.next), state) // the next has to find another voucher than n
	default:
		for _, m := range f.groups[h.group] {
			f.reach(entry(m), state) // the group is reached through another member
		}
	}
	return false
}

// leave continues the search from a node towards the roots and reports whether one is reached.
func (f *PathFinder) leave(n Node, h *hop, used bool) bool {
	if f.w.ranks[n] == 0 && !(used && h.root) {
		return true
	}
	if used {
		f.reach(entry(n), exit(n)) // n is left out of its path
	}
	for _, giver := range f.w.graph.givers(n) {
		if f.mark[entry(giver)] == f.turn {
			continue
		}
		if g := &f.hops[giver]; g.used != f.round || g.next != n {
			f.reach(entry(giver), exit(n))
		}
	}
	return false
}

// store changes the paths along the search that ended at a root's exit. What leaves
// a path is taken out first: a state may lose one neighbor and win another.
func (f *PathFinder) store(end uint32) {
	f.steps = append(f.steps[:0], end)
	for at := end; f.came[at] != origin; at = f.came[at] {
		f.steps = append(f.steps, f.came[at])
	}
	for i := len(f.steps) - 1; i > 0; i-- {
		if from, to := f.steps[i], f.steps[i-1]; from/2 == to/2 && from == exit(Node(from/2)) {
			f.hops[from/2].used = 0 // out of its path
		}
	}
	first := Node(f.steps[len(f.steps)-1] / 2)
	f.served[f.hops[first].group] = true
	f.win(first, NoNode)
	for i := len(f.steps) - 1; i > 0; i-- {
		from, to := f.steps[i], f.steps[i-1]
		a, b := Node(from/2), Node(to/2)
		switch {
		case a == b:
		case from == exit(a): // b vouches for a
			f.win(b, a)
		case to == entry(b): // b instead of a for their group
			f.win(b, NoNode)
		}
	}
	f.hops[end/2].root = true
}

// win puts n before next; what n was the beginning of, it stays.
func (f *PathFinder) win(n, next Node) {
	root := f.hops[n].used == f.round && f.hops[n].root
	f.place(n, next)
	f.hops[n].root = root
}
