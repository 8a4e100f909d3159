package flow

import (
	"cmp"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// addressKey is an address as whole numbers, with an index that belongs to it. Millions of them are sorted several
// times as fast as addresses behind indices.
type addressKey struct {
	high, middle uint64
	low          uint32
	index        uint32
}

// keyOf returns the key of an address.
func keyOf(a common.Address, index uint32) addressKey {
	return addressKey{binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:]), binary.BigEndian.Uint32(a[16:]),
		index}
}

// compare orders keys as their addresses, and those of one address by index.
func (k addressKey) compare(other addressKey) int {
	switch {
	case k.high != other.high:
		return cmp.Compare(k.high, other.high)
	case k.middle != other.middle:
		return cmp.Compare(k.middle, other.middle)
	case k.low != other.low:
		return cmp.Compare(k.low, other.low)
	}
	return cmp.Compare(k.index, other.index)
}

// Parallel calls work for the parts of 0 to n, one part for each processor, and returns when all are done.
func Parallel(n int, work func(low, high int)) {
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for i := range workers {
		if low, high := n*i/workers, n*(i+1)/workers; low < high {
			group.Go(func() { work(low, high) })
		}
	}
	group.Wait()
}

// EdgeList has edges in order of their receivers. It takes eight bytes an edge: there may be ten million.
type EdgeList struct {
	edges []inEdge
	runs  []edgeRun
	pool  []inEdge // the memory that this list and the others made with it have parts of, in their order
}

// inEdge is an edge to the receiver of its run. In a Graph its weight is replaced by the part of the giver's trust that
// goes to the receiver, in units of 2^-32.
type inEdge struct{ from, weight uint32 }

// edgeRun has the edges of one receiver: n of them from first on.
type edgeRun struct{ to, first, n uint32 }

// NewEdgeLists returns empty lists with room for so many edges each, which MUST NOT get more. They have one memory,
// which a graph that is built of them takes over.
func NewEdgeLists(rooms []int) []EdgeList {
	sum := 0
	for _, room := range rooms {
		sum += room
	}
	pool, out, at := make([]inEdge, sum), make([]EdgeList, len(rooms)), 0
	for i, room := range rooms {
		out[i] = EdgeList{edges: pool[at : at : at+room], pool: pool}
		at += room
	}
	return out
}

// Add adds an edge to the receiver that the next End names. weight is the result of EdgeWeight, not 0.
func (l *EdgeList) Add(from, weight uint32) { l.edges = append(l.edges, inEdge{from, weight}) }

// End ends the edges to a receiver.
func (l *EdgeList) End(to uint32) {
	first := 0
	if n := len(l.runs); n > 0 {
		first = int(l.runs[n-1].first + l.runs[n-1].n)
	}
	if n := len(l.edges) - first; n > 0 {
		l.runs = append(l.runs, edgeRun{to, uint32(first), uint32(n)})
	}
}

// eachList calls work with the lists on all processors.
func eachList(lists []EdgeList, work func(*EdgeList)) {
	Parallel(len(lists), func(low, high int) {
		for i := low; i < high; i++ {
			work(&lists[i])
		}
	})
}

// sortEdges replaces numbers of Add by nodes, orders edges by receiver and giver, and keeps the heaviest of each pair.
func sortEdges(lists []EdgeList, single []Edge, nodes []Node, count int) []EdgeList {
	eachList(lists, func(l *EdgeList) {
		for i := range l.edges {
			l.edges[i].from = uint32(nodes[l.edges[i].from])
		}
		for i := range l.runs {
			l.runs[i].to = uint32(nodes[l.runs[i].to])
		}
	})
	if len(single) > 0 || !byReceiver(lists) {
		for i := range single {
			single[i].From, single[i].To = uint32(nodes[single[i].From]), uint32(nodes[single[i].To])
		}
		lists = counted(lists, single, count)
	}
	eachList(lists, (*EdgeList).tidy)
	return lists
}

// byReceiver reports whether edges are in order of their receivers, one list after the other without a receiver in
// common.
func byReceiver(lists []EdgeList) bool {
	last := -1
	for i := range lists {
		for _, run := range lists[i].runs {
			if int(run.to) <= last {
				return false
			}
			last = int(run.to)
		}
	}
	return true
}

// counted orders edges by receiver with a counting sort: comparing ten million edges takes ten times longer. It returns
// a list for each processor.
func counted(lists []EdgeList, single []Edge, nodes int) []EdgeList {
	next := make([]uint32, nodes+1)
	for i := range lists {
		for _, run := range lists[i].runs {
			next[run.to+1] += run.n
		}
	}
	for _, e := range single {
		next[e.To+1]++
	}
	var runs []edgeRun
	for n := range nodes {
		if size := next[n+1]; size > 0 {
			runs = append(runs, edgeRun{uint32(n), next[n], size})
		}
		next[n+1] += next[n]
	}
	edges := make([]inEdge, next[nodes])
	for i := range lists {
		for _, run := range lists[i].runs {
			copy(edges[next[run.to]:], lists[i].edges[run.first:run.first+run.n])
			next[run.to] += run.n
		}
	}
	for _, e := range single {
		edges[next[e.To]] = inEdge{e.From, e.Weight}
		next[e.To]++
	}
	out := make([]EdgeList, runtime.GOMAXPROCS(0))
	for i := range out {
		out[i] = EdgeList{edges: edges, runs: runs[len(runs)*i/len(out) : len(runs)*(i+1)/len(out)], pool: edges}
	}
	return out
}

// tidy orders the edges to each receiver by giver, keeps the heaviest of each pair, and drops edges of an identity to
// itself.
func (l *EdgeList) tidy() {
	for i := range l.runs {
		run := &l.runs[i]
		edges := l.edges[run.first : run.first+run.n]
		slices.SortFunc(edges, func(a, b inEdge) int { return cmp.Compare(a.from, b.from) })
		out := edges[:0]
		for _, e := range edges {
			n := len(out)
			switch {
			case e.from == run.to:
			case n > 0 && out[n-1].from == e.from:
				out[n-1].weight = max(out[n-1].weight, e.weight)
			default:
				out = append(out, e)
			}
		}
		run.n = uint32(len(out))
	}
}

// mostUnused is the part of the memory of lists, a quarter, that a graph may leave unused when it takes it over.
const mostUnused = 4

// connect fills the in-edges: a giver's trust is divided among those it vouches for. It moves the edges together in the
// memory of the lists, because another copy of ten million edges would be the largest part of the memory of an epoch.
func (g *Graph) connect(lists []EdgeList) {
	g.given, g.start = g.sumGiven(lists), make([]uint32, g.Len()+1)
	for i := range lists {
		for _, run := range lists[i].runs {
			g.start[run.to+1] = run.n
		}
	}
	for n := range g.Len() {
		g.start[n+1] += g.start[n]
	}
	if len(lists) == 0 {
		return
	}
	pool, at := lists[0].pool, 0
	for i := range lists {
		l := &lists[i]
		for _, run := range l.runs {
			at += copy(pool[at:], l.edges[run.first:run.first+run.n])
		}
	}
	g.edges = pool[:at:at]
	if len(pool)-at > len(pool)/mostUnused {
		g.edges = slices.Clone(g.edges)
	}
	Parallel(at, func(low, high int) {
		for i := low; i < high; i++ {
			e := &g.edges[i]
			e.weight = uint32(min(uint64(e.weight)<<32/g.given[e.from], 1<<32-1))
		}
	})
}

// sumGiven returns by node the sum of the weights of its praise.
func (g *Graph) sumGiven(lists []EdgeList) []uint64 {
	given := make([]uint64, g.Len())
	var mu sync.Mutex
	Parallel(len(lists), func(low, high int) {
		part := make([]uint64, g.Len())
		for i := low; i < high; i++ {
			for _, run := range lists[i].runs {
				for _, e := range lists[i].edges[run.first : run.first+run.n] {
					part[e.from] += uint64(e.weight)
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for n, sum := range part {
			given[n] += sum
		}
	})
	return given
}
