package wallet

import (
	"context"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute/store/walletdb"
)

// finalDepth is the depth at which a block is final if the endpoint reports no finalized block.
const finalDepth = 64

// recheck reopens confirmed transactions whose block left the chain before it was final: they are sent again with
// the same nonce. What was built on them goes on meanwhile, as nothing here can take it back; the log has it as an
// error.
func (w *Wallet) recheck(ctx context.Context, c *chain) error {
	var final uint64
	err := c.with(ctx, func(e *endpoint) (err error) {
		final, err = e.final(ctx)
		return err
	})
	if err != nil {
		return err
	}
	list, err := walletdb.SettledIntents(ctx, w.db, c.ChainID, final)
	if err != nil {
		return err
	}
	for i := range list {
		in := &list[i]
		gone, err := c.replaced(ctx, in)
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		w.log.Error("transaction: its block left the chain after it was confirmed", "intent", in.ID, "chain",
			in.ChainID,
			"block", in.Mined.Block, "hash", in.Mined.BlockHash)
		if err := walletdb.ReopenIntent(ctx, w.db, in.ID, in.Mined.BlockHash); err != nil {
			return err
		}
	}
	return nil
}

// final returns the newest block that cannot leave the chain.
func (e *endpoint) final(ctx context.Context) (uint64, error) {
	if h, err := e.block(ctx, "finalized"); err == nil && h.Number > 0 {
		return uint64(h.Number), nil
	}
	h, err := e.block(ctx, "latest")
	if err != nil {
		return 0, err
	}
	return uint64(h.Number) - min(uint64(h.Number), finalDepth), nil
}

// replaced reports whether every endpoint shows another block in the place of an intent's.
func (c *chain) replaced(ctx context.Context, in *walletdb.Intent) (bool, error) {
	for _, e := range c.nodes {
		h, err := e.block(ctx, hexutil.EncodeUint64(in.Mined.Block))
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil || h.Hash == in.Mined.BlockHash { // a failed request proves nothing
			return false, nil
		}
	}
	return true, nil
}
