package flow

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Sum returns the sha256 of the graph and of everything the walk found: two of them are equal
// when every score by the one is a score by the other.
func (w *Weights) Sum() (out common.Hash) {
	h := sha256.New()
	g := w.graph
	sumParts(h, g.Len(), func(b []byte, i int) []byte {
		name := g.Name(Node(i))
		return append(b, name[:]...)
	})
	others := g.others()
	sumParts(h, len(others), func(b []byte, i int) []byte {
		return binary.BigEndian.AppendUint32(append(b, others[i][:]...), uint32(g.Node(others[i])))
	})
	sum32(h, g.start)
	sumParts(h, len(g.edges), func(b []byte, i int) []byte { return binary.BigEndian.AppendUint32(b, g.edges[i].from) })
	sumParts(h, len(g.edges),
		func(b []byte, i int) []byte { return binary.BigEndian.AppendUint32(b, g.edges[i].weight) })
	sum64(h, w.mass)
	sum64(h, w.received)
	sumParts(h, len(w.roots), func(b []byte, i int) []byte {
		b = binary.BigEndian.AppendUint32(b, uint32(w.roots[i].node))
		return binary.BigEndian.AppendUint64(b, uint64(w.roots[i].share))
	})
	h.Sum(out[:0])
	return out
}

// others are the addresses that are not the name of their identity, in order.
func (g *Graph) others() (out []common.Address) {
	for _, aliases := range g.aliases {
		out = append(out, aliases...)
	}
	slices.SortFunc(out, common.Address.Cmp)
	return out
}

// sumParts adds a list to a hash: its length, then its parts, which add appends. It hashes many parts at once.
func sumParts(h hash.Hash, n int, add func(b []byte, i int) []byte) {
	const many = 1 << 15
	b := make([]byte, 0, many+64)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	for i := range n {
		if b = add(b, i); len(b) >= many {
			h.Write(b)
			b = b[:0]
		}
	}
	h.Write(b) // a hash does not fail
}

// sum32 adds a list to a hash, each number in four bytes.
func sum32(h hash.Hash, list []uint32) {
	sumParts(h, len(list), func(b []byte, i int) []byte { return binary.BigEndian.AppendUint32(b, list[i]) })
}

// sum64 adds a list to a hash, each number in eight bytes.
func sum64(h hash.Hash, list []uint64) {
	sumParts(h, len(list), func(b []byte, i int) []byte { return binary.BigEndian.AppendUint64(b, list[i]) })
}
