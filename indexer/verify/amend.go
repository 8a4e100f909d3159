package verify

import (
	"context"
	"fmt"

	"repute"
	"repute/indexer/node"
	"repute/store"
)

// amend makes a stored block what its proven receipts say: what a node made up goes,
// and what stood behind it comes.
func (v *Verifier) amend(ctx context.Context, l store.Lease, j judgement) error {
	if err := node.CheckTime(j.block.Block); err != nil {
		return err
	}
	a := store.Amendment{Block: j.block.Block, Remove: j.extra}
	for _, log := range j.logs {
		if event, ours := v.decoder.Decode(log); ours {
			a.Records = append(a.Records, repute.Record{Log: log, Time: j.block.Time, Event: event})
		}
	}
	if err := v.db.Amend(ctx, v.chain.ID, l, a); err != nil {
		return fmt.Errorf("amend block %d: %w", j.block.Number, err)
	}
	v.log.Warn("block amended", "block", j.block.Number, "hash", j.block.Hash, "removed", len(a.Remove), "events", len(a.Records))
	return nil
}

// rename judges a final block that is stored under a hash which the nodes do not
// have, as the block that they have, and stores it as that once it is proven.
func (v *Verifier) rename(ctx context.Context, l store.Lease, number uint64) (judgement, error) {
	stored, _, err := v.db.Logs(ctx, v.chain.ID, repute.BlockRange{From: number, To: number}, 1)
	if err != nil {
		return judgement{}, err
	}
	h := hearing{v: v, nodes: v.witnesses(), number: number, stored: stored}
	j, err := h.judge(ctx)
	if err != nil {
		return j, err
	}
	if !j.proven {
		return judgement{}, fmt.Errorf("block %d: %w", number, node.ErrMoved)
	}
	if err := v.amend(ctx, l, j); err != nil {
		return judgement{}, err
	}
	j.absent, j.extra = nil, nil
	return j, nil
}
