package registry

import (
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
)

// finalDepth is how deep a block is taken for final where nodes do not tell.
const finalDepth = 64

// Transaction implements x402.History.
func (r *Registry) Transaction(ctx context.Context, chainID uint64, hash common.Hash) (to common.Address, data []byte,
	err error) {
	if chainID != r.o.ID.ChainID {
		return to, nil, fmt.Errorf("chain %d: %w", chainID, repute.ErrUnavailable)
	}
	var found struct {
		BlockHash *common.Hash    `json:"blockHash"`
		To        *common.Address `json:"to"`
		Input     hexutil.Bytes   `json:"input"`
	}
	err = r.ask(ctx, func(ctx context.Context, n *ethclient.Client) error {
		err := n.Client().CallContext(ctx, &found, "eth_getTransactionByHash", hash)
		if err == nil && found.BlockHash == nil {
			err = fmt.Errorf("transaction %s is not mined", hash)
		}
		return err
	})
	if found.To != nil {
		to = *found.To
	}
	return to, found.Input, err
}

// Finalized implements x402.History.
func (r *Registry) Finalized(ctx context.Context, chainID uint64) (number, seconds uint64, err error) {
	if chainID != r.o.ID.ChainID {
		return 0, 0, fmt.Errorf("chain %d: %w", chainID, repute.ErrUnavailable)
	}
	err = r.ask(ctx, func(ctx context.Context, n *ethclient.Client) error {
		h, err := n.HeaderByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber)))
		if err != nil || h.Number.Sign() == 0 {
			if h, err = n.HeaderByNumber(ctx, nil); err != nil {
				return err
			}
			deep := new(big.Int).SetUint64(h.Number.Uint64() - min(h.Number.Uint64(), finalDepth))
			if h, err = n.HeaderByNumber(ctx, deep); err != nil {
				return err
			}
		}
		number, seconds = h.Number.Uint64(), h.Time
		return nil
	})
	return number, seconds, err
}
