package indexer

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// The search for a common ancestor reads the newest stored blocks in growing
// portions.
const (
	ancestorStart = 16
	ancestorMost  = 1 << 14
)

// reorg replaces the blocks that left the node's chain: the common ancestor is
// found, the first range above it fetched, and only then both are swapped in one
// transaction.
func (f *Follower) reorg(ctx context.Context, l store.Lease, cursor repute.Block) error {
	ancestor, err := f.ancestor(ctx)
	if err != nil {
		return err
	}
	if f.heads.Latest.Number <= ancestor.Number {
		return ErrBehind // the answers came from two views; the next step sees one
	}
	started := time.Now()
	f.prefetch.dropAll()
	p, err := f.waitForRange(ctx, ancestor.Number+1)
	if err == nil {
		err = p.continues(ancestor)
	}
	if err != nil {
		return err
	}
	b := f.batch(l, ancestor, p)
	if err := eventdb.Rewind(ctx, f.db, ancestor, b); err != nil {
		f.prefetch.dropAll()
		return fmt.Errorf("rewind from block %d to %d: %w", cursor.Number, ancestor.Number, err)
	}
	if err := f.committed(ctx, b, p, started); err != nil {
		return err
	}
	f.opts.Metrics.reorgs.WithLabelValues(f.label).Inc()
	f.log.Info("reorganized", "was", cursor.Number, "ancestor", ancestor.Number, "to", p.to.Number)
	return fmt.Errorf("rewound from block %d to %d: %w", cursor.Number, ancestor.Number, repute.ErrReorged)
}

// ancestor is the newest stored block that the node has too. Where none of the
// kept ones is, it is the place before the first block.
func (f *Follower) ancestor(ctx context.Context) (repute.Block, error) {
	checked := 0
	for limit := ancestorStart; ; limit *= 4 {
		stored, err := chaindb.RecentBlocks(ctx, f.db, f.chain.ID, limit)
		if err != nil {
			return repute.Block{}, err
		}
		found, ok, err := f.newestCommon(ctx, stored[min(checked, len(stored)):])
		if err != nil || ok {
			return found, err
		}
		if len(stored) < limit {
			return repute.Block{Number: f.chain.StartBlock - 1}, nil
		}
		if limit >= ancestorMost {
			return repute.Block{}, fmt.Errorf("none of the newest %d stored blocks is on the node's chain: %w", limit,
				repute.ErrFinalized)
		}
		checked = len(stored)
	}
}

// newestCommon returns the newest stored block that is still on the chain; false when none of them
// is. Several endpoints must agree where there are several.
func (f *Follower) newestCommon(ctx context.Context, stored []repute.Block) (repute.Block, bool, error) {
	var numbers []uint64
	hashes := map[uint64]common.Hash{}
	for _, b := range stored {
		if b.Number <= f.heads.Latest.Number {
			numbers = append(numbers, b.Number)
			hashes[b.Number] = b.Hash
		}
	}
	ask := f.source.Blocks
	if several, ok := f.source.(interface {
		Agreed(ctx context.Context, numbers []uint64) ([]repute.Block, error)
	}); ok {
		ask = several.Agreed // what one endpoint says alone is not believed
	}
	theirs, err := ask(ctx, numbers)
	if err != nil {
		return repute.Block{}, false, fmt.Errorf("common ancestor: %w", err)
	}
	for _, b := range theirs {
		if hashes[b.Number] == b.Hash {
			return b, true, nil
		}
	}
	return repute.Block{}, false, nil
}
