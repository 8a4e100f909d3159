package trust

import (
	"cmp"
	"math/bits"
	"slices"

	"repute/trust/flow"
)

// buildPacked is build for evidence with packed rows, which are in chain order.
func (l *accountBuilder) buildPacked(e *Evidence) account {
	l.resetPacked(e)
	excluded := 0
	for i := range e.Packed {
		if !l.addPacked(e, i) {
			excluded++
		}
	}
	byBurst := func(a, b statement) int {
		return cmp.Or(cmp.Compare(a.burst, b.burst), cmp.Compare(a.channel, b.channel), cmp.Compare(a.rater, b.rater))
	}
	if !slices.IsSortedFunc(l.statements, byBurst) {
		slices.SortStableFunc(l.statements, byBurst)
	}
	l.records = slices.Grow(l.records[:0], len(l.statements))[:len(l.statements)]
	for i := range l.statements {
		l.records[i] = l.record(i)
	}
	return account{owner: l.w.Graph().Node(e.Owner), excluded: excluded, records: l.records}
}

// resetPacked is reset for packed rows.
func (l *accountBuilder) resetPacked(e *Evidence) {
	l.count, l.statements, l.excluded, l.related = 0, l.statements[:0], l.excluded[:0], l.related[:0]
	l.blockBursts, l.heard = l.blockBursts[:0], 0
	clear(l.led)
	if l.led == nil {
		l.led = map[uint32]bool{}
	}
	g := l.w.Graph()
	l.related = append(l.related, relatedRater{raterOf(g, e.Owner), isSelf})
	for _, a := range e.Self {
		l.related = append(l.related, relatedRater{raterOf(g, a), isSelf})
	}
	for _, a := range e.Named {
		l.related = append(l.related, relatedRater{raterOf(g, a), isNamed})
	}
	l.hearings.reset(len(e.Packed))
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
	rec.Node = e.Packing.Nodes[row.Writer]
	if own := l.ownOf(e, rec.Node, row.Writer); own == isSelf || own == isNamed && rec.Value >= 0 {
		return false
	}
	if rec.Value > 0 && uint64(row.Block) < e.Since {
		return false
	}
	key := uint64(rec.Node)
	if rec.Node == flow.NoNode {
		key = 1<<32 | uint64(row.Writer)
	}
	spoke, known := l.hearings.at(key)
	if !known {
		*spoke = raterBurst{l.heard, l.join(l.packedBurst(e, i), rec.Node)}
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

// hearings finds the raters of one agent by number. Unlike a map it is emptied in no time.
type hearings struct {
	slots []hearing
	turn  uint32
	shift int // of a hash, to that of a slot
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
	h.shift = 64 - bits.Len(uint(size-1))
}

// at returns the burst of a rater, to be set by the caller when the rater was not known.
func (h *hearings) at(key uint64) (of *raterBurst, known bool) {
	const golden = 0x9e3779b97f4a7c15
	mask := uint64(1)<<(64-h.shift) - 1
	for i := key * golden >> h.shift; ; i = (i + 1) & mask {
		s := &h.slots[i]
		if s.turn != h.turn {
			s.turn, s.key = h.turn, key
			return &s.raterBurst, false
		}
		if s.key == key {
			return &s.raterBurst, true
		}
	}
}
