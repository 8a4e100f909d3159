package trust

import (
	"math/bits"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/flow"
)

// buildPacked is build for evidence with packed rows, which are in chain order.
func (l *accountBuilder) buildPacked(e *Evidence) account {
	l.resetPacked(e)
	l.readRaters(e)
	excluded := 0
	for i := range e.Packed {
		if !l.addPacked(e, i) {
			excluded++
		}
	}
	if !slices.IsSortedFunc(l.statements, (statement).compare) {
		slices.SortStableFunc(l.statements, (statement).compare)
	}
	l.records = slices.Grow(l.records[:0], len(l.statements))[:len(l.statements)]
	for i := range l.statements {
		l.records[i] = l.record(i)
	}
	return account{owner: l.related[0].node, excluded: excluded, records: l.records}
}

// resetPacked is reset for packed rows.
func (l *accountBuilder) resetPacked(e *Evidence) {
	l.count, l.statements, l.excluded, l.related = 0, l.statements[:0], l.excluded[:0], l.related[:0]
	l.blockBursts, l.heard, l.led = l.blockBursts[:0], 0, l.led[:0]
	g := l.w.Graph()
	l.related = append(l.related, relatedRater{ownerOf(g, e), isSelf})
	for _, a := range e.Self {
		l.related = append(l.related, relatedRater{raterOf(g, a), isSelf})
	}
	for _, a := range e.Named {
		l.related = append(l.related, relatedRater{raterOf(g, a), isNamed})
	}
	l.hearings.reset(len(e.Packed))
}

// ownerOf returns the identity of the owner.
func ownerOf(g *flow.Graph, e *Evidence) rater {
	if e.OwnerNumber > 0 {
		if n := e.Packing.Nodes[e.OwnerNumber-1]; n != flow.NoNode {
			return rater{node: n}
		}
	}
	return raterOf(g, e.Owner)
}

// readRaters sets the nodes and weights of the raters of packed rows. Loops of their own let the processor overlap
// these scattered reads.
func (l *accountBuilder) readRaters(e *Evidence) {
	l.nodes, l.weights = l.nodes[:0], l.weights[:0]
	for i := range e.Packed {
		l.nodes = append(l.nodes, e.Packing.Nodes[e.Packed[i].Writer])
	}
	for _, n := range l.nodes {
		l.weights = append(l.weights, l.w.Weight(n))
	}
}

// relatedRater is a rater that belongs to the agent.
type relatedRater struct {
	rater
	own own
}

// ownOf returns how a rater of packed rows belongs to the agent, 0 when it does not.
func (l *accountBuilder) ownOf(e *Evidence, node flow.Node, writer uint32) (is own) {
	for i := range l.related {
		r := &l.related[i]
		if r.node == node && (node != flow.NoNode || r.address == e.Packing.Raters[writer]) {
			is = max(is, r.own)
		}
	}
	return is
}

// addPacked adds a packed row and reports whether it counts.
func (l *accountBuilder) addPacked(e *Evidence, i int) bool {
	row := &e.Packed[i]
	if i > 0 && e.Packed[i-1].Block != row.Block {
		l.blockBursts = l.blockBursts[:0]
	}
	rec, reason := e.Packing.Read(l.p, row, e.Block.Time.Unix())
	if reason != "" {
		return false
	}
	rec.Node = l.nodes[i]
	if own := l.ownOf(e, rec.Node, row.Writer); own == isSelf || own == isNamed && rec.Value >= 0 {
		return false
	}
	if rec.Value > 0 && uint64(row.Block) < e.Since {
		return false
	}
	key := uint64(rec.Node)
	if rec.Node == flow.NoNode {
		key = strangerKey(row.Writer)
	}
	spoke, known := l.hearings.at(key)
	if !known {
		*spoke = raterBurst{l.heard, l.join(l.packedBurst(e, i), rec.Node, l.weights[i])}
		l.heard++
	}
	l.statements = append(l.statements, statement{Record: rec, row: i, channel: l.p.ChannelOf(&rec),
		raterBurst: *spoke})
	return true
}

// blockBurst is a burst of the block that is being read.
type blockBurst struct{ text, content, number uint32 }

// packedBurst is burst for packed rows. Bursts of other blocks need not be known, because rows are in chain order.
func (l *accountBuilder) packedBurst(e *Evidence, i int) uint32 {
	row := &e.Packed[i]
	alone := (i == 0 || e.Packed[i-1].Block != row.Block) && (i == len(e.Packed)-1 || e.Packed[i+1].Block != row.Block)
	text := e.Packing.Kinds[row.Kind].Text
	if !alone {
		for _, b := range l.blockBursts {
			if b.text == text && b.content == row.Content {
				return b.number
			}
		}
	}
	l.count++
	if !alone {
		l.blockBursts = append(l.blockBursts, blockBurst{text, row.Content, l.count})
	}
	return l.count
}

// keepRaters lets later rows, which need not be packed, find the raters of packed ones.
func (l *accountBuilder) keepRaters(e *Evidence) {
	l.self, l.bursts, l.strangers = map[rater]own{}, map[burst]uint32{}, map[common.Address]raterBurst{}
	l.setSelf(e)
	for i := range e.Packed {
		writer := e.Packed[i].Writer
		if e.Packing.Nodes[writer] != flow.NoNode {
			continue
		}
		if spoke := l.hearings.find(strangerKey(writer)); spoke.turn == l.hearings.turn {
			l.strangers[e.Packing.Raters[writer]] = spoke.raterBurst
		}
	}
}

// strangerKey is the key in hearings of a rater that the graph does not know.
func strangerKey(writer uint32) uint64 { return 1<<32 | uint64(writer) }

// hearings finds the raters of one agent by number. Unlike a map it is emptied in no time.
type hearings struct {
	slots []hearing
	turn  uint32
	shift int // of a hash, to that of a slot
	used  int
}

// hearing is a slot, which is free unless its turn is that of hearings.
type hearing struct {
	key  uint64
	turn uint32
	raterBurst
}

// reset forgets all raters and makes room for so many others.
func (h *hearings) reset(most int) {
	size := max(16, 1<<bits.Len(uint(most)*2))
	if h.turn++; size > len(h.slots) || h.turn == 0 {
		h.slots, h.turn = make([]hearing, max(size, len(h.slots))), 1
	}
	h.shift, h.used = 64-bits.Len(uint(size-1)), 0
}

// at returns the burst of a rater, to be set by the caller when the rater was not known.
func (h *hearings) at(key uint64) (of *raterBurst, known bool) {
	s := h.find(key)
	if s.turn == h.turn {
		return &s.raterBurst, true
	}
	if h.used++; 4*h.used > 3*h.size() {
		h.grow()
		s = h.find(key)
	}
	s.turn, s.key = h.turn, key
	return &s.raterBurst, false
}

// size returns how many slots are in use, which is a power of two.
func (h *hearings) size() int { return 1 << (64 - h.shift) }

// find returns the slot of a rater, or the free one where it would be.
func (h *hearings) find(key uint64) *hearing {
	const golden = 0x9e3779b97f4a7c15
	mask := uint64(1)<<(64-h.shift) - 1
	for i := key * golden >> h.shift; ; i = (i + 1) & mask {
		if s := &h.slots[i]; s.turn != h.turn || s.key == key {
			return s
		}
	}
}

// grow doubles the slots.
func (h *hearings) grow() {
	old := h.slots[:h.size()]
	h.shift--
	h.slots = make([]hearing, h.size())
	for i := range old {
		if old[i].turn == h.turn {
			*h.find(old[i].key) = old[i]
		}
	}
}
