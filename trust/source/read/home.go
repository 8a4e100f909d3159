package read

import (
	"context"
	"fmt"
	"slices"
	"time"

	"repute"
	"repute/indexer/node"
)

// end is a place where a chain was read for other ones.
type end struct {
	time  time.Time // of the epoch
	block repute.Block
}

// Depths at which blocks count as final where a node does not name them, as for the chains that are followed.
const (
	depth        = 64
	depthOfHeads = 256 // where it calls its newest block final
)

// endOf finds the last final block of a chain whose time is not after the epoch's end. Until a later block is final it
// is not known which one that is: all who ask find the same.
func (r *Reader) endOf(ctx context.Context, s *session) (repute.Block, error) {
	r.mu.Lock()
	known := r.ends[s.chain]
	r.mu.Unlock()
	if known.time.Equal(s.end) && !s.end.IsZero() {
		return known.block, nil
	}
	high, err := r.lastFinal(ctx, s.chain)
	if err != nil {
		return repute.Block{}, err
	}
	if !high.Time.After(s.end) {
		return repute.Block{}, fmt.Errorf("the final blocks of chain %d do not reach the epoch's end yet", s.chain)
	}
	low, err := r.before(ctx, s, high)
	if err != nil {
		return repute.Block{}, err
	}
	for low.Number+1 < high.Number {
		middle, err := r.block(ctx, s.chain, low.Number+(high.Number-low.Number)/2)
		if err != nil {
			return repute.Block{}, err
		}
		if middle.Time.After(s.end) {
			high = middle
		} else {
			low = middle
		}
	}
	block, err := s.confirm(ctx, low.Number)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ends[s.chain] = end{s.end, block}
	}
	return block, err
}

// lastFinal is the newest final block of a chain.
func (r *Reader) lastFinal(ctx context.Context, chain uint64) (repute.Block, error) {
	heads, err := r.pools[chain].Heads(ctx)
	if err != nil {
		return repute.Block{}, fmt.Errorf("chain %d: %w", chain, err)
	}
	final, below := heads.Finalized, uint64(depth)
	if heads.HeadFinal {
		below = depthOfHeads
	}
	if final == 0 && heads.Latest.Number > below {
		final = heads.Latest.Number - below
	}
	return r.block(ctx, chain, final)
}

// block reads a header from any endpoint. What follows from it is confirmed by all of them in the end: see confirm.
func (r *Reader) block(ctx context.Context, chain, number uint64) (repute.Block, error) {
	blocks, err := r.pools[chain].Blocks(ctx, []uint64{number})
	if err != nil {
		return repute.Block{}, fmt.Errorf("chain %d: %w", chain, err)
	}
	return blocks[0], nil
}

// before finds a block that is not after the epoch's end, in steps that grow.
func (r *Reader) before(ctx context.Context, s *session, high repute.Block) (repute.Block, error) {
	for step := uint64(256); ; step *= 4 {
		low, err := r.block(ctx, s.chain, high.Number-min(step, high.Number))
		switch {
		case err != nil:
			return low, err
		case !low.Time.After(s.end):
			return low, nil
		case low.Number == 0:
			return low, fmt.Errorf("chain %d has no block from before the epoch's end", s.chain)
		}
	}
}

// confirm reads a block and the next one from all endpoints: it is the last one that is not after the epoch's end.
func (s *session) confirm(ctx context.Context, number uint64) (repute.Block, error) {
	ask := func(ctx context.Context, n *node.Node) ([]repute.Block, error) {
		return n.Blocks(ctx, []uint64{number, number + 1})
	}
	blocks, err := agreed(ctx, s, "headers", slices.Equal, ask)
	if err != nil {
		return repute.Block{}, err
	}
	if blocks[0].Time.After(s.end) || !blocks[1].Time.After(s.end) {
		return repute.Block{}, fmt.Errorf("the endpoints of chain %d contradict themselves about block %d", s.chain,
			number)
	}
	return blocks[0], nil
}
