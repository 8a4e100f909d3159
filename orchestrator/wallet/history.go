package wallet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// maxBlocks bounds one question for logs, and maxPast how far back they are read where no block is named.
const (
	maxBlocks = 1000
	maxPast   = 20 * maxBlocks
)

// Logs returns the logs that a query selects, on which endpoints agree: of the block that it names by its hash,
// else of the newest blocks that have any, up to its ToBlock where it has one.
func (w *Wallet) Logs(ctx context.Context, chainID uint64, q ethereum.FilterQuery) ([]types.Log, error) {
	c, err := w.on(chainID)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, e *endpoint, at *head) ([]types.Log, error) { return e.pastLogs(ctx, q, at) }
	list, _, err := agree(ctx, c, q.BlockHash, read, func(a, b *[]types.Log) string {
		one, err1 := json.Marshal(*a)
		other, err2 := json.Marshal(*b)
		if err := errors.Join(err1, err2); err != nil || string(one) != string(other) {
			return "other logs"
		}
		return ""
	})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// pastLogs reads the logs of a block that is named, or of the newest blocks up to one.
func (e *endpoint) pastLogs(ctx context.Context, q ethereum.FilterQuery, at *head) (out []types.Log, err error) {
	filter := map[string]any{"address": q.Addresses, "topics": q.Topics}
	if q.BlockHash != nil {
		filter["blockHash"] = *q.BlockHash
		if err := e.call(ctx, &out, "eth_getLogs", filter); err != nil {
			return nil, e.failed("logs", err)
		}
		return out, nil
	}
	newest := uint64(at.Number)
	if q.ToBlock != nil && q.ToBlock.IsUint64() {
		newest = min(newest, q.ToBlock.Uint64())
	}
	for back := uint64(0); back < maxPast && back <= newest; back += maxBlocks {
		filter["fromBlock"] = hexutil.Uint64(newest - min(newest, back+maxBlocks-1))
		filter["toBlock"] = hexutil.Uint64(newest - back)
		if err := e.call(ctx, &out, "eth_getLogs", filter); err != nil {
			return nil, e.failed("logs", err)
		}
		if len(out) > 0 {
			break
		}
	}
	return out, nil
}

// pastCall is a transaction that was mined.
type pastCall struct {
	BlockHash *common.Hash    `json:"blockHash"`
	To        *common.Address `json:"to"`
	Input     hexutil.Bytes   `json:"input"`
}

// Transaction returns which contract a mined transaction called, and with what; endpoints agree on it.
func (w *Wallet) Transaction(ctx context.Context, chainID uint64, hash common.Hash) (to common.Address, data []byte,
	err error) {
	c, err := w.on(chainID)
	if err != nil {
		return to, nil, err
	}
	list, _, err := agree(ctx, c, nil, func(ctx context.Context, e *endpoint, _ *head) (p pastCall, err error) {
		if err := e.call(ctx, &p, "eth_getTransactionByHash", hash); err != nil {
			return p, e.failed("transaction "+hash.Hex(), err)
		}
		if p.BlockHash == nil {
			return p, e.failed("transaction "+hash.Hex(), errors.New("not mined"))
		}
		return p, nil
	}, func(a, b *pastCall) string {
		if *a.BlockHash != *b.BlockHash || string(a.Input) != string(b.Input) {
			return "another transaction"
		}
		return ""
	})
	if err != nil {
		return to, nil, err
	}
	if list[0].To != nil {
		to = *list[0].To
	}
	return to, list[0].Input, nil
}

// Finalized returns number and time of the newest block that cannot be replaced, by the slower of two
// endpoints.
func (w *Wallet) Finalized(ctx context.Context, chainID uint64) (number, seconds uint64, err error) {
	c, err := w.on(chainID)
	if err != nil {
		return 0, 0, err
	}
	heads := make([]*head, len(c.nodes))
	failed := c.each(ctx, func(e *endpoint) error {
		n, err := e.final(ctx)
		if err == nil {
			heads[e.place], err = e.block(ctx, hexutil.EncodeBig(new(big.Int).SetUint64(n)))
		}
		return err
	})
	heads = slices.DeleteFunc(heads, func(h *head) bool { return h == nil })
	if len(heads) < c.quorum() {
		return 0, 0, fmt.Errorf("chain %d: its final block is not known: %w: %w", chainID, repute.ErrUnavailable, failed)
	}
	slowest := slices.MinFunc(heads, func(a, b *head) int { return int(a.Number) - int(b.Number) })
	return uint64(slowest.Number), uint64(slowest.Time), nil
}
