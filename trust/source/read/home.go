package read

import (
	"context"
	"fmt"
	"slices"
	"time"

	"repute"
	"repute/indexer/node"
)

// end is the result of endOf for one epoch, kept so that all sources of a home are read at the same block.
type end struct {
	time  time.Time // of the end of the epoch
	block repute.Block
}

// Depths below the newest block at which blocks count as final when a node does not return its finalized block. The
// indexer uses the same depths.
const (
	depth        = 64
	depthOfHeads = 256 // for a node that returns its newest block as finalized
)

// endOf finds the last final block of a home whose time is not after the epoch's end. It fails until a later block is
// final too: only then does every machine find the same block.
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

// lastFinal returns the newest final block of a chain.
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

// block reads the header of a block from any endpoint.
func (r *Reader) block(ctx context.Context, chain, number uint64) (repute.Block, error) {
	blocks, err := r.pools[chain].Blocks(ctx, []uint64{number})
	if err != nil {
		return repute.Block{}, fmt.Errorf("chain %d: %w", chain, err)
	}
	return blocks[0], nil
}

// before finds a block below high whose time is not after the epoch's end. It quadruples its step at each try, so that
// the search ends after few requests.
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

// confirm reads a block and its successor from all endpoints, and fails unless the block is the last one whose time is
// not after the epoch's end.
func (s *session) confirm(ctx context.Context, number uint64) (repute.Block, error) {
	ask := func(ctx context.Context, n *node.Node) ([]repute.Block, error) {
		return n.Blocks(ctx, []uint64{number, number + 1})
	}
	blocks, err := agreed(ctx, s, "headers", slices.Equal, ask)
	if err != nil {
		return repute.Block{}, err
	}
	if blocks[0].Time.After(s.end) || !blocks[1].Time.After(s.end) {
		return repute.Block{}, fmt.Errorf("the endpoints of chain %d contradict themselves about block %d", s.chain, number)
	}
	return blocks[0], nil
}
