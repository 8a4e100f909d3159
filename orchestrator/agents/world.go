package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/outbound"
	"repute/orchestrator/transaction"
)

// World is everything that an agent can call; *orchestrator.Context implements it. Each call is checked by the
// policy, counted and recorded by the run, and made once however often the method is repeated. Send returns when
// the transaction is confirmed.
type World interface {
	Tool(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error)
	HTTP(ctx context.Context, q outbound.HTTPRequest) (outbound.HTTPResponse, error)
	Pay(ctx context.Context, q outbound.PaidRequest) (outbound.PaidResponse, error)
	Read(ctx context.Context, chainID uint64, to common.Address, data []byte) ([]byte, error)
	Send(ctx context.Context, tx transaction.Tx) (transaction.Sent, error)
}

// view reads a contract's view function.
func view[T any](ctx context.Context, w World, chainID uint64, to common.Address, data []byte,
	unpack func([]byte) (T, error)) (v T, err error) {
	out, err := w.Read(ctx, chainID, to, data)
	if err != nil {
		return v, err
	}
	if v, err = unpack(out); err != nil {
		return v, fmt.Errorf("answer of %s: %w", to, err)
	}
	return v, nil
}

// logOf returns the first log of a transaction that unpack accepts.
func logOf[E any](sent transaction.Sent, from common.Address, unpack func(*types.Log) (*E, error)) (*E, error) {
	var logs []*types.Log
	if len(sent.Result) > 0 {
		if err := json.Unmarshal(sent.Result, &logs); err != nil {
			return nil, fmt.Errorf("logs of %s: %w", sent.Hash, err)
		}
	}
	for _, l := range logs {
		if l.Address != from {
			continue
		}
		if e, err := unpack(l); err == nil {
			return e, nil
		}
	}
	return nil, fmt.Errorf("transaction %s left no such event at %s: %w", sent.Hash, from, repute.ErrConflict)
}

// ends reports whether an error concerns the run and not the call: the run waits, has ended, has
// used up its budget, or cannot make such calls.
func ends(ctx context.Context, err error) bool {
	var waits *orchestrator.ApprovalError
	return ctx.Err() != nil || errors.Is(err, repute.ErrLimited) || errors.Is(err, repute.ErrFenced) ||
		errors.Is(err, repute.ErrNotFound) || errors.As(err, &waits)
}
