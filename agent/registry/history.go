package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/x402"
)

// finalDepth is how deep a block is taken for final where nodes do not tell.
const finalDepth = 64

// minedCall is what a node says of a mined transaction.
type minedCall struct {
	BlockHash *common.Hash    `json:"blockHash"`
	To        *common.Address `json:"to"`
	Input     hexutil.Bytes   `json:"input"`
}

// Transaction implements x402.History, by what more than half of the nodes that answer say. A payment whose transaction
// is another one than thought counts as not made.
func (r *Registry) Transaction(ctx context.Context, chainID uint64, hash common.Hash) (to common.Address, data []byte,
	err error) {
	if err := r.isOf(chainID); err != nil {
		return to, nil, err
	}
	found, err := most(ctx, r, func(ctx context.Context, n *ethclient.Client) (c minedCall, err error) {
		err = n.Client().CallContext(ctx, &c, "eth_getTransactionByHash", hash)
		if err == nil && c.BlockHash == nil {
			err = fmt.Errorf("transaction %s is not mined", hash)
		}
		return c, err
	})
	if found.To != nil {
		to = *found.To
	}
	return to, found.Input, err
}

// Finalized implements x402.History: the newest block that more than half of the nodes that answer have as final.
// A single node MUST NOT decide it: payments that are not found in final blocks are given up.
func (r *Registry) Finalized(ctx context.Context, chainID uint64) (number, seconds uint64, err error) {
	if err := r.isOf(chainID); err != nil {
		return 0, 0, err
	}
	heads := askAll(ctx, r, func(ctx context.Context, n *ethclient.Client) (*types.Header, error) {
		h, err := n.HeaderByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber)))
		if err == nil && h.Number.Sign() > 0 {
			return h, nil
		}
		if h, err = n.HeaderByNumber(ctx, nil); err != nil {
			return nil, err
		}
		deep := new(big.Int).SetUint64(h.Number.Uint64() - min(h.Number.Uint64(), finalDepth))
		return n.HeaderByNumber(ctx, deep)
	})
	if len(heads) == 0 {
		return 0, 0, r.silent()
	}
	numbers, times := []uint64{}, []uint64{}
	for _, h := range heads {
		numbers, times = append(numbers, h.Number.Uint64()), append(times, h.Time)
	}
	return reached(numbers), reached(times), nil
}

// reached is the largest number that more than half of a list reach.
func reached(list []uint64) uint64 {
	slices.Sort(list)
	return list[(len(list)-1)/2]
}

// Logs implements x402.History, by what more than half of the nodes that answer say.
func (r *Registry) Logs(ctx context.Context, chainID uint64, q ethereum.FilterQuery, w x402.Window) ([]types.Log, bool,
	error) {
	if err := r.isOf(chainID); err != nil {
		return nil, false, err
	}
	if q.BlockHash != nil {
		out, err := blocks{r}.Between(ctx, q)
		return out, false, err
	}
	return x402.PastLogs(ctx, blocks{r}, q, w)
}

// blocks implements x402.Blocks.
type blocks struct{ r *Registry }

// Newest implements x402.Blocks.
func (b blocks) Newest(ctx context.Context) (uint64, error) {
	heads := askAll(ctx, b.r,
		func(ctx context.Context, n *ethclient.Client) (uint64, error) { return n.BlockNumber(ctx) })
	if len(heads) == 0 {
		return 0, b.r.silent()
	}
	return reached(heads), nil
}

// Time implements x402.Blocks.
func (b blocks) Time(ctx context.Context, number uint64) (uint64, error) {
	return most(ctx, b.r, func(ctx context.Context, n *ethclient.Client) (uint64, error) {
		h, err := n.HeaderByNumber(ctx, new(big.Int).SetUint64(number))
		if err != nil {
			return 0, err
		}
		return h.Time, nil
	})
}

// Between implements x402.Blocks.
func (b blocks) Between(ctx context.Context, q ethereum.FilterQuery) ([]types.Log, error) {
	return most(ctx, b.r,
		func(ctx context.Context, n *ethclient.Client) ([]types.Log, error) { return n.FilterLogs(ctx, q) })
}

// askAll asks all nodes at once, and returns the answers of those that answer.
func askAll[T any](ctx context.Context, r *Registry, question func(context.Context,
	*ethclient.Client) (T, error)) (out []T) {
	answers := make([]*T, len(r.nodes))
	var all sync.WaitGroup
	for i, n := range r.nodes {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
			defer cancel()
			if a, err := question(ctx, n); err == nil {
				answers[i] = &a
			}
		})
	}
	all.Wait()
	for _, a := range answers {
		if a != nil {
			out = append(out, *a)
		}
	}
	return out
}

// most returns what more than half of the nodes that answer say. repute.ErrUnavailable where none answers, or they
// disagree.
func most[T any](ctx context.Context, r *Registry, question func(context.Context,
	*ethclient.Client) (T, error)) (none T,
	err error) {
	answers := askAll(ctx, r, question)
	if len(answers) == 0 {
		return none, r.silent()
	}
	votes := map[string]int{}
	for _, a := range answers {
		text, err := json.Marshal(a)
		if err != nil {
			return none, fmt.Errorf("answer of a node: %w", err)
		}
		if votes[string(text)]++; 2*votes[string(text)] > len(answers) {
			return a, nil
		}
	}
	return none, fmt.Errorf("chain %d: %w: its nodes disagree", r.o.ID.ChainID, repute.ErrUnavailable)
}

// silent is the error where no node answers.
func (r *Registry) silent() error {
	return fmt.Errorf("chain %d: %w: no node answers", r.o.ID.ChainID, repute.ErrUnavailable)
}
