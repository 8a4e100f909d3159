package indexer

import (
	"cmp"

	"github.com/ethereum/go-ethereum/common"

	"repute/indexer/node"
)

// headFinalLooks is how many heads in a row the node must call final before the depth
// counts in place of its finalized tag. One alone may be a chain that stands still.
const headFinalLooks = 3

// finality decides which block of a chain is the newest final one.
type finality struct {
	configured uint64 // Options.Depth
	told       bool   // the node names finalized blocks below its head
	depth      uint64 // counts in place of the tag, 0 while the tag does
	looks      int    // heads in a row that the node called final
	head       common.Hash
	warned     bool
}

// of gives the newest final block, given what the node says and what was final before.
// Finality does not advance while the node calls its newest block final, until that is
// its habit or a depth is configured.
func (f *finality) of(h node.Heads, before uint64) uint64 {
	f.look(h)
	before = min(before, h.Latest.Number)
	switch {
	case h.Finalized > 0:
		return h.Finalized
	case f.depth > 0:
		return max(before, h.Latest.Number-min(h.Latest.Number, f.depth))
	}
	return before
}

// look decides whether the node's tag or a depth counts. A node that once told finality
// and now fails to has not lost it.
func (f *finality) look(h node.Heads) {
	switch {
	case h.Finalized > 0:
		f.told, f.looks, f.depth = true, 0, 0
	case h.HeadFinal && h.Latest.Hash != f.head:
		f.looks++
	case !h.HeadFinal && !f.told:
		f.depth = f.configured
	}
	f.head = h.Latest.Hash
	if h.HeadFinal && (f.configured > 0 || f.looks >= headFinalLooks) {
		f.depth = cmp.Or(f.configured, nearHead)
	}
}

// refuted reports, once, that a depth counts because the node calls its newest block final.
func (f *finality) refuted() bool {
	if f.warned || f.looks < headFinalLooks {
		return false
	}
	f.warned = true
	return true
}
