package synth

import (
	"cmp"
	"math"
	"slices"

	"repute"
)

// cut is a run of bytes that a lossy server leaves out of an answer.
type cut struct {
	block      uint64
	start, end uint64
}

// Lost lists the logs that a lossy server leaves out of answers over more than
// one block: all logs of one block, the first, the middle and the last of three
// others, one of every kind of event, and the newest feedback.
func (h *History) Lost() ([]Position, error) {
	lost := map[Position]bool{h.meta.Tail: true}
	for kind, at := range h.meta.Marks {
		if kind < repute.KindUpgraded {
			lost[at] = true
		}
	}
	number, err := h.blockWith(3, 10, h.meta.LastEvent*5/8)
	if err == nil {
		err = h.loseBlock(lost, number)
	}
	if err != nil {
		return nil, err
	}
	for i, choose := range []func(n uint64) uint64{
		func(uint64) uint64 { return 0 },
		func(n uint64) uint64 { return n / 2 },
		func(n uint64) uint64 { return n - 1 },
	} {
		number, err := h.blockWith(3, math.MaxUint32, h.meta.LastEvent*uint64(i+1)/4)
		if err == nil {
			err = h.loseOne(lost, number, choose)
		}
		if err != nil {
			return nil, err
		}
	}
	list := make([]Position, 0, len(lost))
	for at := range lost {
		list = append(list, at)
	}
	slices.SortFunc(list, func(a, b Position) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
	})
	return list, nil
}

// positions lists the logs of a block.
func (h *History) positions(number uint64) ([]Position, error) {
	logs, err := h.Logs(number)
	if err != nil {
		return nil, err
	}
	list := make([]Position, len(logs))
	for i, l := range logs {
		list[i] = Position{Block: number, LogIndex: uint64(i), Kind: h.enc.kindOf(l.Topics[0])}
	}
	return list, nil
}

func (h *History) loseBlock(lost map[Position]bool, number uint64) error {
	list, err := h.positions(number)
	for _, at := range list {
		lost[at] = true
	}
	return err
}

func (h *History) loseOne(lost map[Position]bool, number uint64, choose func(n uint64) uint64) error {
	list, err := h.positions(number)
	if err == nil && len(list) > 0 {
		lost[list[choose(uint64(len(list)))]] = true
	}
	return err
}

// blockWith finds the next block with that many logs, the last one when there is
// none.
func (h *History) blockWith(least, most uint32, from uint64) (uint64, error) {
	for number := from; number < h.meta.LastEvent; number++ {
		b, _, _, err := h.neighbors(number)
		if err != nil || b.logs >= least && b.logs <= most {
			return number, err
		}
	}
	return h.meta.LastEvent, nil
}

// cuts finds the bytes of the lost logs, neighboring ones joined.
func (h *History) cuts() ([]cut, error) {
	lost, err := h.Lost()
	if err != nil {
		return nil, err
	}
	var cuts []cut
	for _, at := range lost {
		c, err := h.find(at)
		if err != nil {
			return nil, err
		}
		if last := len(cuts) - 1; last >= 0 && cuts[last].end == c.start && cuts[last].block == c.block {
			cuts[last].end = c.end
			continue
		}
		cuts = append(cuts, c)
	}
	return cuts, nil
}

// find gives the bytes of one log.
func (h *History) find(at Position) (cut, error) {
	start, end, err := h.lineSpan(at.Block, at.Block)
	if err != nil {
		return cut{}, err
	}
	raw, err := h.read(start, end)
	if err != nil {
		return cut{}, err
	}
	c := cut{block: at.Block, end: start}
	for range at.LogIndex + 1 {
		var line []byte
		line, raw = cutLine(raw)
		c.start, c.end = c.end, c.end+uint64(len(line))
	}
	return c, nil
}
