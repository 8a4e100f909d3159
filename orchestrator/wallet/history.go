package wallet

import (
	"cmp"
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
	"repute/x402"
)

// past is what endpoints say of logs, and whether they looked at all blocks of a window.
type past struct {
	Logs  []types.Log
	Whole bool
}

// Logs implements x402.History: the logs that a query selects, on which endpoints agree.
func (w *Wallet) Logs(ctx context.Context, chainID uint64, q ethereum.FilterQuery,
	window x402.Window) ([]types.Log, bool,
	error) {
	c, err := w.on(chainID)
	if err != nil {
		return nil, false, err
	}
	read := func(ctx context.Context, e *endpoint, at *head) (p past, err error) {
		if q.BlockHash != nil {
			p.Logs, err = blocks{e, at}.Between(ctx, q)
		} else {
			p.Logs, p.Whole, err = x402.PastLogs(ctx, blocks{e, at}, q, window)
		}
		return p, err
	}
	list, _, err := agree(ctx, c, q.BlockHash, read, func(a, b *past) string {
		one, err1 := json.Marshal(*a)
		other, err2 := json.Marshal(*b)
		if err := errors.Join(err1, err2); err != nil || string(one) != string(other) {
			return "other logs"
		}
		return ""
	})
	if err != nil {
		return nil, false, err
	}
	return list[0].Logs, list[0].Whole, nil
}

// blocks implements x402.Blocks up to the block that endpoints agree on.
type blocks struct {
	e  *endpoint
	at *head
}

// Newest implements x402.Blocks.
func (b blocks) Newest(context.Context) (uint64, error) { return uint64(b.at.Number), nil }

// Time implements x402.Blocks.
func (b blocks) Time(ctx context.Context, number uint64) (uint64, error) {
	h, err := b.e.block(ctx, hexutil.EncodeUint64(number))
	if err != nil {
		return 0, err
	}
	return uint64(h.Time), nil
}

// Between implements x402.Blocks, also for a block that is named by its hash.
func (b blocks) Between(ctx context.Context, q ethereum.FilterQuery) (out []types.Log, err error) {
	filter := map[string]any{"address": q.Addresses, "topics": q.Topics}
	if q.BlockHash != nil {
		filter["blockHash"] = *q.BlockHash
	} else {
		filter["fromBlock"], filter["toBlock"] = (*hexutil.Big)(q.FromBlock), (*hexutil.Big)(q.ToBlock)
	}
	if err := b.e.call(ctx, &out, "eth_getLogs", filter); err != nil {
		return nil, b.e.failed("logs", err)
	}
	return out, nil
}

// pastCall is a transaction that was mined.
type pastCall struct {
	BlockHash *common.Hash    `json:"blockHash"`
	To        *common.Address `json:"to"`
	Input     hexutil.Bytes   `json:"input"`
}

// Transaction returns which contract a mined transaction called, and with what. Endpoints MUST agree on block, target
// and input. The address is zero for one that made a contract.
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
		sameTarget := a.To == b.To || a.To != nil && b.To != nil && *a.To == *b.To
		if *a.BlockHash != *b.BlockHash || !sameTarget || string(a.Input) != string(b.Input) {
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

// Finalized returns number and time of the newest block that cannot be replaced. It is the lowest final block of all
// endpoints that answer; repute.ErrUnavailable if fewer than a quorum do.
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
		return 0, 0, fmt.Errorf("chain %d: its final block is not known: %w: %w", chainID, repute.ErrUnavailable,
			failed)
	}
	slowest := slices.MinFunc(heads, func(a, b *head) int { return cmp.Compare(a.Number, b.Number) })
	return uint64(slowest.Number), uint64(slowest.Time), nil
}
