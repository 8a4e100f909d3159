package indexer

import (
	"cmp"

	"github.com/ethereum/go-ethereum/common"

	"repute/indexer/node"
)

// headFinalLooks is how many heads in a row the node must call final before the depth counts instead of
// its finalized tag. A single one may be the head of a chain that has stopped.
const headFinalLooks = 3

// finality decides which block of a chain is the newest final one.
type finality struct {
	configured uint64 // Options.Depth
	told       bool   // the node named a finalized block below its head
	depth      uint64 // counts instead of the tag, 0 while the tag counts
	looks      int    // heads in a row that the node called final
	head       common.Hash
	warned     bool
}

// update returns the newest final block, given the heads of the node and the block that was final before.
// While the node calls its newest block final, the final block does not advance until headFinalLooks heads
// were called final or a depth is configured.
func (f *finality) update(h node.Heads, before uint64) uint64 {
	f.observe(h)
	before = min(before, h.Latest.Number)
	switch {
	case h.Finalized > 0:
		return h.Finalized
	case f.depth > 0:
		return max(before, h.Latest.Number-min(h.Latest.Number, f.depth))
	}
	return before
}

// observe decides whether the tag of the node or a depth counts. A node that named finalized blocks before
// and names none now is still believed to finalize blocks.
func (f *finality) observe(h node.Heads) {
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

// refuted reports, once only, that a depth counts because the node calls its newest block final.
func (f *finality) refuted() bool {
	if f.warned || f.looks < headFinalLooks {
		return false
	}
	f.warned = true
	return true
}
