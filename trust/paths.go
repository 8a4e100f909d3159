package trust

// finder counts vertex-disjoint paths from roots to raters. It reuses its memory
// between counts, so it is for one goroutine at a time.
//
// It is the usual flow with every identity split into an entry and an exit of capacity
// one, searched backwards: from a rater through those who vouch for it to a root.
type finder struct {
	w    *Weights
	mark []uint32 // by state: the search that reached it
	came []uint32 // by state: the one before, origin for the first
	turn uint32

	groups [][]Node
	member map[Node]int // the group a node is in
	served []bool       // groups with a path
	on     map[Node]hop // the paths so far
	queue  []uint32
}

// hop is an identity's place on a path.
type hop struct {
	next Node // the one it vouches for, towards the rater; NoNode: it is the rater
	root bool // the path begins here
}

const origin = ^uint32(0)

func newFinder(w *Weights) *finder {
	n := 2 * w.graph.Len()
	return &finder{w: w, mark: make([]uint32, n), came: make([]uint32, n)}
}

// count finds how many of the groups of raters can be reached from roots by paths that
// share no identity and do not pass through without, up to most. A group has one path,
// an identity one group.
func (f *finder) count(groups [][]Node, without Node, most int) int {
	f.groups, f.served = groups, make([]bool, len(groups))
	f.on, f.member = map[Node]hop{}, map[Node]int{}
	for i, members := range groups {
		for _, n := range members {
			f.member[n] = i
		}
	}
	paths := 0
	for paths < most && f.augment(without) {
		paths++
	}
	return paths
}

// States: the entry of a node, where its path towards the rater leaves it, and its
// exit, from where those who vouch for it are asked.
func entry(n Node) uint32 { return uint32(n) * 2 }
func exit(n Node) uint32  { return uint32(n)*2 + 1 }

// augment finds room for one more path.
func (f *finder) augment(without Node) bool {
	f.turn++
	f.queue = f.queue[:0]
	if without != NoNode {
		f.mark[entry(without)], f.mark[exit(without)] = f.turn, f.turn
	}
	for i, members := range f.groups {
		for _, n := range members {
			if !f.served[i] {
				f.reach(entry(n), origin)
			}
		}
	}
	for i := 0; i < len(f.queue); i++ {
		if state := f.queue[i]; f.expand(state) {
			f.store(state)
			return true
		}
	}
	return false
}

// reach queues a state that this search has not seen.
func (f *finder) reach(state, before uint32) {
	if f.mark[state] != f.turn {
		f.mark[state], f.came[state] = f.turn, before
		f.queue = append(f.queue, state)
	}
}

// expand follows what is free from a state. It is true at the exit of a root where no
// path begins yet.
func (f *finder) expand(state uint32) bool {
	n := Node(state / 2)
	h, used := f.on[n]
	switch {
	case state == exit(n):
		return f.leave(n, h, used)
	case !used:
		f.reach(exit(n), state)
	case h.next != NoNode:
		f.reach(exit(h.next), state) // the next has to find another voucher than n
	default:
		for _, m := range f.groups[f.member[n]] {
			f.reach(entry(m), state) // the group is reached through another member
		}
	}
	return false
}

func (f *finder) leave(n Node, h hop, used bool) bool {
	if f.w.isRoot(n) && !h.root {
		return true
	}
	if used {
		f.reach(entry(n), exit(n)) // n is left out of its path
	}
	for _, giver := range f.w.graph.givers(n) {
		if g, ok := f.on[giver]; !ok || g.next != n {
			f.reach(entry(giver), exit(n))
		}
	}
	return false
}

// store changes the paths along the search that ended at a root's exit. What leaves
// a path is taken out first: a state may lose one neighbour and win another.
func (f *finder) store(end uint32) {
	steps := []uint32{end}
	for f.came[steps[len(steps)-1]] != origin {
		steps = append(steps, f.came[steps[len(steps)-1]])
	}
	first := Node(steps[len(steps)-1] / 2)
	f.served[f.member[first]] = true
	won := map[Node]hop{first: {next: NoNode}}
	for i := len(steps) - 1; i > 0; i-- {
		from, to := steps[i], steps[i-1]
		a, b := Node(from/2), Node(to/2)
		switch {
		case a == b && from == exit(a): // out of its path
			delete(f.on, a)
		case a != b && from == exit(a): // b vouches for a
			won[b] = hop{next: a}
		case a != b && to == entry(b): // b instead of a for their group
			won[b] = hop{next: NoNode}
		}
	}
	for n, h := range won {
		f.on[n] = hop{next: h.next, root: f.on[n].root}
	}
	last := Node(end / 2)
	h := f.on[last]
	h.root = true
	f.on[last] = h
}
