package flow

import (
	"sync/atomic"
)

// edgeBlocks holds a graph's edges as the walk reads them. The walk looks up what the giver
// of each edge gives, all over memory; here edges are sorted by blocks of givers that fit a
// processor's cache, and within a block by receiver, so that both sides of an edge are near
// those of the one before.
type edgeBlocks struct {
	// packed is one edge each: the step from the receiver before, the giver's place in
	// its block, and the share.
	packed []uint64
	cells  []uint32 // where the edges of a block and a part begin: block*flowParts + part
	bounds []int    // nodes of parts: from bounds[i] to below bounds[i+1]
}

const (
	flowParts  = 64 // of receivers, among which goroutines are divided
	giverBits  = 15 // of a block
	stepBits   = 32 - giverBits
	longest    = 1<<stepBits - 1
	giverShift = 32
	stepShift  = giverShift + giverBits
)

// FreeWalk frees memory that only Walk and Personal need. They take longer afterwards.
func (g *Graph) FreeWalk() { g.blocks.Store(nil) }

// edgeBlocks returns the edges as the walk reads them. They are made by the first walk, when the memory that Build took
// may have been freed.
func (g *Graph) edgeBlocks() *edgeBlocks {
	if kept := g.blocks.Load(); kept != nil {
		return kept
	}
	f := newEdgeBlocks(g)
	if g.extra == nil {
		g.blocks.Store(f)
	}
	return f
}

// newEdgeBlocks orders the edges of a graph by blocks of their givers, so that a step reads memory in
// order.
func newEdgeBlocks(g *Graph) *edgeBlocks {
	f := &edgeBlocks{bounds: g.parts(flowParts)}
	blocks := g.Len()>>giverBits + 1
	f.cells = make([]uint32, blocks*flowParts+1)
	f.each(g, func(cell int, _ uint64) { f.cells[cell+1]++ })
	for i := range blocks * flowParts {
		f.cells[i+1] += f.cells[i]
	}
	f.packed = make([]uint64, f.cells[blocks*flowParts])
	next := append([]uint32(nil), f.cells...)
	f.each(g, func(cell int, edge uint64) {
		f.packed[next[cell]] = edge
		next[cell]++
	})
	return f
}

// each names every edge's cell and packs it, by receiver. A step that is too long is made of
// several, of edges without a share. Parts are read concurrently; a cell is of one part.
func (f *edgeBlocks) each(g *Graph, use func(cell int, edge uint64)) {
	Parallel(flowParts, func(low, high int) {
		last := make([]int, g.Len()>>giverBits+1)
		for part := low; part < high; part++ {
			f.eachOf(g, part, last, use)
		}
	})
}

// eachOf is each for one part. last is memory for a number of each block.
func (f *edgeBlocks) eachOf(g *Graph, part int, last []int, use func(cell int, edge uint64)) {
	for block := range last {
		last[block] = f.bounds[part]
	}
	for n := f.bounds[part]; n < f.bounds[part+1]; n++ {
		for i := g.start[n]; i < g.start[n+1]; i++ {
			e := g.edges[i]
			block := int(e.from >> giverBits)
			cell := block*flowParts + part
			for ; n-last[block] > longest; last[block] += longest {
				use(cell, longest<<stepShift)
			}
			place := uint64(e.from) & (1<<giverBits - 1)
			use(cell, uint64(n-last[block])<<stepShift|place<<giverShift|uint64(e.weight))
			last[block] = n
		}
	}
}

// givers is memory for what each of so many nodes gives: whole blocks, so that places in
// them are known to be inside.
func (f *edgeBlocks) givers(nodes int) []uint64 {
	return make([]uint64, max(nodes, (len(f.cells)-1)/flowParts<<giverBits))
}

// run fills next with what each node receives and gives the sum; nodes that the flow was
// not made with receive nothing. Whole numbers add up the same in any order, so the parts
// may run at once.
func (f *edgeBlocks) run(given, next []uint64) uint64 {
	clear(next[f.bounds[flowParts]:])
	var total atomic.Uint64
	Parallel(flowParts, func(low, high int) { total.Add(f.receive(given, next, low, high)) })
	return total.Load()
}

// receive adds up what the nodes of parts from low to below high are given.
func (f *edgeBlocks) receive(given, next []uint64, low, high int) (sum uint64) {
	mine := next[f.bounds[low]:f.bounds[high]]
	clear(mine)
	for block := 0; block*flowParts < len(f.cells)-1; block++ {
		givers := (*[1 << giverBits]uint64)(given[block<<giverBits:])
		for part := low; part < high; part++ {
			cell := block*flowParts + part
			at := f.bounds[part]
			for _, edge := range f.packed[f.cells[cell]:f.cells[cell+1]] {
				at += int(edge >> stepShift)
				next[at] += times(givers[edge>>giverShift&(1<<giverBits-1)], edge&(1<<giverShift-1))
			}
		}
	}
	for _, got := range mine {
		sum += got
	}
	return sum
}
