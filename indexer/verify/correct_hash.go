package verify

import (
	"context"
	"fmt"

	"repute"
	"repute/indexer/node"
	"repute/store"
	"repute/store/importdb"
	"repute/store/verifydb"
)

// amend replaces the stored events of a block by those that its proven receipts show.
func (v *Verifier) amend(ctx context.Context, l store.Lease, j judgment) error {
	if err := node.CheckTime(j.block.Block); err != nil {
		return err
	}
	a := importdb.Amendment{Block: j.block.Block, Remove: j.extra}
	for _, log := range j.logs {
		if event, ours := v.decoder.Decode(log); ours {
			a.Records = append(a.Records, repute.Record{Log: log, Time: j.block.Time, Event: event})
		}
	}
	if err := importdb.Amend(ctx, v.db, v.chain.ID, l, a); err != nil {
		return fmt.Errorf("amend block %d: %w", j.block.Number, err)
	}
	v.log.Warn("block amended", "block", j.block.Number, "hash", j.block.Hash, "removed", len(a.Remove), "events",
		len(a.Records))
	return nil
}

// correctHash judges a final block that is stored with a hash that no endpoint has, as the block
// that the endpoints have, and stores it under the hash of that one once it is proven.
func (v *Verifier) correctHash(ctx context.Context, l store.Lease, number uint64) (judgment, error) {
	stored, _, err := verifydb.Logs(ctx, v.db, v.chain.ID, repute.BlockRange{From: number, To: number}, 1)
	if err != nil {
		return judgment{}, err
	}
	h := inquiry{v: v, nodes: v.witnesses.Nodes(), number: number, stored: stored}
	j, err := h.judge(ctx)
	if err != nil {
		return j, err
	}
	if !j.proven {
		return judgment{}, fmt.Errorf("block %d: %w", number, node.ErrMoved)
	}
	if err := v.amend(ctx, l, j); err != nil {
		return judgment{}, err
	}
	j.absent, j.extra = nil, nil
	return j, nil
}
