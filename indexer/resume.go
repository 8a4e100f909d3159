package indexer

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
)

// comparedBlocks is how many of the newest imported blocks the node must have too before an import is
// resumed.
const comparedBlocks = 16

// addOrResume adds the chain to the store. A chain that was imported without gaps is resumed at the end
// of the import, if the node has the same blocks. A chain without registries is stored already.
func (f *Follower) addOrResume(ctx context.Context, l store.Lease) error {
	if f.chain.WithoutRegistries() {
		return nil // chaindb.WatchTreasury added it
	}
	end, imported, err := importdb.CanResume(ctx, f.db, f.chain)
	if err != nil {
		return err
	}
	if !imported {
		return chaindb.AddChain(ctx, f.db, f.chain)
	}
	if end, err = f.checkImport(ctx, end); err != nil {
		return err
	}
	if err := importdb.Resume(ctx, f.db, f.chain, l, end); err != nil {
		return err
	}
	f.log.Info("following on from an import", "block", end.Number)
	return nil
}

// checkImport compares the newest imported blocks with those of the node, and returns the last one as the
// node has it.
func (f *Follower) checkImport(ctx context.Context, end repute.Block) (repute.Block, error) {
	heads, err := f.source.Heads(ctx)
	if err != nil {
		return end, err
	}
	if err := f.sameChain(heads); err != nil {
		return end, err
	}
	if heads.Latest.Number < end.Number {
		return end, fmt.Errorf("the import ends at block %d, the node's head is %d: %w", end.Number,
			heads.Latest.Number,
			repute.ErrUnavailable)
	}
	stored, err := chaindb.RecentBlocks(ctx, f.db, f.chain.ID, comparedBlocks)
	if err != nil {
		return end, err
	}
	known := []repute.Block{end}
	for _, b := range stored {
		if b.Hash != (common.Hash{}) && b.Number < end.Number {
			known = append(known, b)
		}
	}
	if len(known) == 1 && end.Hash == (common.Hash{}) {
		return end, repute.Conflict("the import names no block hash, so nothing tells whether it is of this chain")
	}
	numbers := make([]uint64, len(known))
	for i, b := range known {
		numbers[i] = b.Number
	}
	theirs, err := f.source.Blocks(ctx, numbers)
	if err != nil {
		return end, err
	}
	for i, b := range known {
		if b.Hash != (common.Hash{}) && theirs[i].Hash != b.Hash {
			return end, repute.Conflict("block %d is %s in the import and %s at the node: the import is of another chain, or of blocks that were replaced",
				b.Number, b.Hash, theirs[i].Hash)
		}
	}
	return theirs[0], nil
}

// sameChain returns repute.ErrConflict when the node is of another chain.
func (f *Follower) sameChain(heads node.Heads) error {
	if heads.ChainID == f.chain.ID {
		return nil
	}
	return repute.Conflict("the endpoint serves chain %d, configured is %d: give an endpoint of chain %d, or name chain %d",
		heads.ChainID, f.chain.ID, f.chain.ID, heads.ChainID)
}
