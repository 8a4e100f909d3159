package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// Errors about state that a node does not have or does not serve.
var (
	// ErrNoState is returned when the node does not have the state of the block any more.
	ErrNoState = errors.New("the node does not have the state of the block")
	// ErrReverted is returned when the contract refused the call.
	ErrReverted = errors.New("call reverted")
	// ErrMoved is returned when the node's block of that number has another hash than the requested
	// one.
	ErrMoved = errors.New("the node has another block at that height")
)

// Call is one contract call (eth_call).
type Call struct {
	To   common.Address
	Data []byte
}

// CallResult is the result of one call. Err is ErrReverted when the contract reverted, or another
// error when this call alone failed.
type CallResult struct {
	Data []byte
	Err  error
}

// Calls makes calls against the state at a block. Each batch also requests the header of the block,
// and an answer counts only if the node has that very block. ErrNoState and ErrMoved concern all
// calls.
func (n *Node) Calls(ctx context.Context, at repute.Block, calls []Call) ([]CallResult, error) {
	results := make([]CallResult, len(calls))
	left := results
	for part := range slices.Chunk(calls, max(1, n.opts.MaxBatch-1)) {
		if err := n.someCalls(ctx, at, part, left[:len(part)]); err != nil {
			return nil, err
		}
		left = left[len(part):]
	}
	return results, nil
}

// someCalls makes the calls of one batch and stores their results.
func (n *Node) someCalls(ctx context.Context, at repute.Block, calls []Call, results []CallResult) error {
	raw := make([]hexutil.Bytes, len(calls))
	tag := hexutil.EncodeUint64(at.Number)
	batch := make([]rpc.BatchElem, 0, len(calls)+1)
	for i, c := range calls {
		batch = append(batch, rpc.BatchElem{Method: "eth_call", Result: &raw[i],
			Args: []any{map[string]any{"to": c.To, "data": hexutil.Bytes(c.Data)}, tag}})
	}
	if err := n.callAt(ctx, at, batch); err != nil {
		return err
	}
	for i := range calls {
		switch err := batch[i].Error; {
		case err == nil:
			results[i].Data = raw[i]
		case jsonrpc.IsRevert(err):
			results[i].Err = ErrReverted
		case jsonrpc.LacksState(err), WaitingHelps(err):
			return n.stateError("eth_call", err)
		default:
			results[i].Err = n.wrap("eth_call", err)
		}
	}
	return nil
}

// callAt sends a batch whose answers count only if the node has the block: it also requests the header
// and compares its hash. The errors of the calls are in their elements.
func (n *Node) callAt(ctx context.Context, at repute.Block, batch []rpc.BatchElem) error {
	var head *jsonrpc.Header
	all := append(batch[:len(batch):len(batch)], byNumber(at.Number, &head))
	err := n.BatchCallContext(ctx, all)
	copy(batch, all)
	if err != nil {
		return err
	}
	if e := all[len(batch)].Error; e != nil {
		return n.wrap("eth_getBlockByNumber", e)
	}
	b, err := block(head)
	if err != nil {
		return n.wrap(fmt.Sprintf("block %d", at.Number), errors.Join(ErrNoState, err))
	}
	if at.Hash != (common.Hash{}) && b.Hash != at.Hash {
		return n.wrap(fmt.Sprintf("block %d", at.Number), ErrMoved)
	}
	return nil
}

// Storage reads one storage slot of a contract at a block.
func (n *Node) Storage(ctx context.Context, at repute.Block, contract common.Address, slot common.Hash) (common.Hash,
	error) {
	var word hexutil.Bytes
	batch := []rpc.BatchElem{{Method: "eth_getStorageAt", Args: []any{contract, slot, hexutil.EncodeUint64(at.Number)},
		Result: &word}}
	if err := n.callAt(ctx, at, batch); err != nil {
		return common.Hash{}, err
	}
	if err := batch[0].Error; err != nil {
		return common.Hash{}, n.stateError("eth_getStorageAt", err)
	}
	return common.BytesToHash(word), nil
}

// Codes reads the code of addresses at a block, empty where there is none, in batches that also request the block's
// header as Calls does.
func (n *Node) Codes(ctx context.Context, at repute.Block, addresses []common.Address) ([][]byte, error) {
	out := make([][]byte, 0, len(addresses))
	for part := range slices.Chunk(addresses, max(1, n.opts.MaxBatch-1)) {
		codes := make([]hexutil.Bytes, len(part))
		batch := make([]rpc.BatchElem, len(part))
		for i, a := range part {
			batch[i] = rpc.BatchElem{Method: "eth_getCode", Args: []any{a, hexutil.EncodeUint64(at.Number)}, Result: &codes[i]}
		}
		if err := n.callAt(ctx, at, batch); err != nil {
			return nil, err
		}
		for i := range part {
			if err := batch[i].Error; err != nil {
				return nil, n.stateError("eth_getCode", err)
			}
			out = append(out, codes[i])
		}
	}
	return out, nil
}

// stateError returns the error of a call that needs the state of a block. It is ErrNoState where the node does not
// have the state any more. The cause MUST be free of keys.
func (n *Node) stateError(method string, cause error) error {
	if jsonrpc.LacksState(cause) {
		return fmt.Errorf("%s: %w (%w)", method, ErrNoState, cause)
	}
	return n.wrap(method, cause)
}

// WaitingHelps reports whether a failure concerns more than the one call and may disappear after a
// pause.
func WaitingHelps(err error) bool {
	switch jsonrpc.Diagnose(err).Fault {
	case jsonrpc.FaultRate, jsonrpc.FaultAuth, jsonrpc.FaultTransient:
		return true
	}
	return false
}

// Unsupported reports whether an error is the message of a node that does not have the method.
func Unsupported(err error) bool {
	const code = -32601
	var coded rpc.Error
	if errors.As(err, &coded) && coded.ErrorCode() == code {
		return true
	}
	s := strings.ToLower(err.Error())
	for _, words := range []string{"does not exist", "not available", "not supported", "unsupported", "method not found",
		"not whitelisted",
		"not implemented", "method not allowed"} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}

// Sealed is a header with the fields that commit to the logs of its block.
type Sealed struct {
	repute.Block
	Bloom types.Bloom
	Root  common.Hash // root of the receipts; zero where the chain has none
	Txs   []common.Hash
	// Recomputed reports whether the hash of the block is the hash of the header with all its
	// fields, so that no field can be forged. It is false on chains with another form of header.
	Recomputed bool
	// Unknown reports whether the header has fields that this version does not know, so that its
	// hash cannot be recomputed.
	Unknown bool
}

// sealed converts a header and compares its hash with its fields.
func sealed(h *jsonrpc.Header) (Sealed, error) {
	if h == nil {
		return Sealed{}, jsonrpc.ErrNoBlock
	}
	b, err := block(h)
	if err != nil {
		return Sealed{}, err
	}
	s := Sealed{Block: b, Txs: h.Txs, Recomputed: h.Own == b.Hash, Unknown: h.Unknown}
	if h.Bloom != nil {
		s.Bloom = *h.Bloom
	}
	if h.Root != nil {
		s.Root = *h.Root
	}
	return s, nil
}

// SealedBlocks returns canonical headers in the order of numbers.
func (n *Node) SealedBlocks(ctx context.Context, numbers []uint64) ([]Sealed, error) {
	out := make([]Sealed, 0, len(numbers))
	for part := range slices.Chunk(numbers, n.opts.MaxBatch) {
		headers := make([]*jsonrpc.Header, len(part))
		batch := make([]rpc.BatchElem, len(part))
		for i, number := range part {
			batch[i] = byNumber(number, &headers[i])
		}
		if err := n.BatchCallContext(ctx, batch); err != nil {
			return nil, err
		}
		for i, number := range part {
			s, err := sealed(headers[i])
			if err = errors.Join(batch[i].Error, err); err == nil && s.Number != number {
				err = &jsonrpc.AnswerError{What: fmt.Sprintf("block %d instead", s.Number)}
			}
			if err != nil {
				return nil, n.wrap(fmt.Sprintf("block %d", number), err)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// Header returns a canonical header whose hash was recomputed. If the header before it does not
// have the hash of its fields either, the chain has another form of header, and Recomputed is
// false.
func (n *Node) Header(ctx context.Context, number uint64) (Sealed, error) {
	numbers := []uint64{number}
	if number > 0 {
		numbers = []uint64{number - 1, number}
	}
	headers, err := n.SealedBlocks(ctx, numbers)
	if err != nil {
		return Sealed{}, err
	}
	before, s := &headers[0], headers[len(headers)-1]
	err = CheckTime(s.Block)
	switch {
	case err != nil:
	case number > 0 && s.Parent != before.Hash:
		err = &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is not the child of block %d", number, number-1)}
	case before.Recomputed && !s.Recomputed:
		err = &jsonrpc.AnswerError{What: fmt.Sprintf("block %d is not what its hash says", number)}
	}
	if err != nil {
		return Sealed{}, n.wrap(fmt.Sprintf("block %d", number), err)
	}
	return s, nil
}

// LogsOf requests the logs of single blocks by hash, and returns one list per block. The list of a
// block that the node does not know, or cannot answer for, is nil.
func (n *Node) LogsOf(ctx context.Context, blocks []common.Hash, addresses []common.Address) ([][]types.Log, error) {
	out := make([][]types.Log, 0, len(blocks))
	for part := range slices.Chunk(blocks, n.opts.MaxBatch) {
		logs := make([][]types.Log, len(part))
		batch := make([]rpc.BatchElem, len(part))
		for i, hash := range part {
			batch[i] = byFilter(map[string]any{"blockHash": hash, "address": addresses}, &logs[i])
		}
		if err := n.BatchCallContext(ctx, batch); err != nil {
			return nil, err
		}
		for i, hash := range part {
			if batch[i].Error != nil || !allOf(logs[i], hash) {
				logs[i] = nil
			}
		}
		out = append(out, logs...)
	}
	return out, nil
}

// allOf reports whether all logs are of the block with that hash.
func allOf(logs []types.Log, hash common.Hash) bool {
	for i := range logs {
		if logs[i].BlockHash != hash || logs[i].Removed || !inBlock(&logs[i]) {
			return false
		}
	}
	return true
}

// Matching requests the logs of a range that match topics by position, as in eth_getLogs: an empty
// position matches any topic.
func (n *Node) Matching(ctx context.Context, r repute.BlockRange, addresses []common.Address,
	topics [][]common.Hash) ([]types.Log, error) {
	var logs []types.Log
	err := n.CallContext(ctx, &logs, "eth_getLogs", map[string]any{"fromBlock": hexutil.EncodeUint64(r.From),
		"toBlock": hexutil.EncodeUint64(r.To), "address": addresses, "topics": topics})
	if err != nil {
		return nil, err
	}
	for i := range logs {
		if l := &logs[i]; l.Removed || !inBlock(l) || l.BlockNumber < r.From || l.BlockNumber > r.To ||
			!slices.Contains(addresses, l.Address) {
			return nil, n.wrap("eth_getLogs", BadLog(l, "not requested"))
		}
	}
	return logs, nil
}
