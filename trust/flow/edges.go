package flow

import (
	"cmp"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// AddressKey is an address as whole numbers, with an index that belongs to it. Millions of them are sorted several times
// as fast as addresses behind indices.
type AddressKey struct {
	high, middle uint64
	low          uint32
	Index        uint32
}

// KeyOf returns the key of an address.
func KeyOf(a common.Address, index uint32) AddressKey {
	return AddressKey{binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:]), binary.BigEndian.Uint32(a[16:]), index}
}

// Compare orders keys as their addresses, and those of one address by index.
func (k AddressKey) Compare(other AddressKey) int {
	switch {
	case k.high != other.high:
		return cmp.Compare(k.high, other.high)
	case k.middle != other.middle:
		return cmp.Compare(k.middle, other.middle)
	case k.low != other.low:
		return cmp.Compare(k.low, other.low)
	}
	return cmp.Compare(k.Index, other.Index)
}

// Same reports whether both keys are of one address.
func (k AddressKey) Same(other AddressKey) bool {
	return k.high == other.high && k.middle == other.middle && k.low == other.low
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

// sortEdges replaces numbers of Add by nodes, orders edges by receiver and giver, and keeps the heaviest of each pair.
func sortEdges(lists [][]Edge, nodes []uint32, count int) [][]Edge {
	for _, list := range lists {
		Parallel(len(list), func(low, high int) {
			for i := low; i < high; i++ {
				list[i].From, list[i].To = nodes[list[i].From], nodes[list[i].To]
			}
		})
	}
	lists = slices.DeleteFunc(lists, func(list []Edge) bool { return len(list) == 0 })
	if !byReceiver(lists) {
		lists = [][]Edge{counted(slices.Concat(lists...), count)}
	}
	for i, list := range lists {
		lists[i] = heaviest(list)
	}
	return lists
}

// byReceiver reports whether edges are in order of their receivers, one list after the other without a receiver in
// common.
func byReceiver(lists [][]Edge) bool {
	last := -1
	for _, list := range lists {
		if int(list[0].To) <= last {
			return false
		}
		if !slices.IsSortedFunc(list, func(a, b Edge) int { return cmp.Compare(a.To, b.To) }) {
			return false
		}
		last = int(list[len(list)-1].To)
	}
	return true
}

// counted orders edges by receiver with a counting sort: comparing ten million edges takes ten times longer.
func counted(edges []Edge, nodes int) []Edge {
	next, out := make([]uint32, nodes+1), make([]Edge, len(edges))
	for _, e := range edges {
		next[e.To+1]++
	}
	for n := range nodes {
		next[n+1] += next[n]
	}
	for _, e := range edges {
		out[next[e.To]] = e
		next[e.To]++
	}
	return out
}

// heaviest orders the edges to each receiver by giver, keeps the heaviest of each pair, and drops edges of an identity
// to itself. Edges are in order of their receivers.
func heaviest(edges []Edge) []Edge {
	sortReceivers(edges)
	out := edges[:0]
	for _, e := range edges {
		n := len(out)
		switch {
		case e.From == e.To:
		case n > 0 && out[n-1].From == e.From && out[n-1].To == e.To:
			out[n-1].Weight = max(out[n-1].Weight, e.Weight)
		default:
			out = append(out, e)
		}
	}
	return out
}

// sortReceivers orders the edges to each receiver by giver, on all processors.
func sortReceivers(edges []Edge) {
	parts := atReceivers(edges, runtime.GOMAXPROCS(0))
	Parallel(len(parts)-1, func(low, high int) {
		for first, end := parts[low], parts[high]; first < end; {
			next := first + 1
			for next < end && edges[next].To == edges[first].To {
				next++
			}
			slices.SortFunc(edges[first:next], func(a, b Edge) int { return cmp.Compare(a.From, b.From) })
			first = next
		}
	})
}

// atReceivers returns where parts of about the same size begin, and the end of the last one. No receiver has edges in
// two of them.
func atReceivers(edges []Edge, parts int) []int {
	begins := make([]int, parts+1)
	for part := range begins {
		i := len(edges) * part / parts
		for i > 0 && i < len(edges) && edges[i].To == edges[i-1].To {
			i++
		}
		begins[part] = i
	}
	return begins
}

// connect fills the in-edges: a giver's trust is divided among those it vouches for.
func (g *Graph) connect(lists [][]Edge) {
	total := 0
	for _, list := range lists {
		total += len(list)
	}
	g.given, g.start = make([]uint64, g.Len()), make([]uint32, g.Len()+1)
	g.from, g.share = make([]Node, 0, total), make([]uint32, total)
	for _, list := range lists {
		for _, e := range list {
			g.given[e.From] += uint64(e.Weight)
			g.start[e.To+1]++
			g.from = append(g.from, Node(e.From))
		}
	}
	for n := range g.Len() {
		g.start[n+1] += g.start[n]
	}
	first := 0
	for _, list := range lists {
		share := g.share[first : first+len(list)]
		Parallel(len(list), func(low, high int) {
			for i := low; i < high; i++ {
				share[i] = uint32(min(uint64(list[i].Weight)<<32/g.given[list[i].From], 1<<32-1))
			}
		})
		first += len(list)
	}
}
