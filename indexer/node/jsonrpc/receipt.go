package jsonrpc

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// ReceiptJSON is a receipt as nodes encode it, with the fields that OP Stack chains add for
// deposits.
type ReceiptJSON struct {
	Type       uint64
	Status     *uint64
	State      []byte // before Byzantium, instead of a status
	GasSoFar   uint64
	Logs       []*types.Log
	BlockHash  common.Hash
	Number     uint64 // of the block, 0 where the answer lacks it
	TxHash     common.Hash
	Nonce      *uint64
	NonceSince *uint64
}

// receipts reads a list of receipts, nil for null. Each receipt must have the members that it has
// on every chain, so that no answer is much larger in memory than it was on the wire.
func (r *objectReader) receipts() ([]*ReceiptJSON, error) {
	if open, err := r.openList("a list of receipts"); !open {
		return nil, err
	}
	list := []*ReceiptJSON{}
	for r.dec.PeekKind() != ']' {
		one, err := r.receipt()
		if err == nil && one == nil {
			err = errors.New("null")
		}
		if err != nil {
			return nil, fmt.Errorf("receipt %d of the answer: %w", len(list), err)
		}
		list = append(list, one)
	}
	_, err := r.dec.ReadToken()
	return list, err
}

// Flags for the members that a receipt must have.
const (
	receiptGas = 1 << iota
	receiptLogs
	receiptBlock
	receiptTx
	receiptAll = 1<<iota - 1
)

// receipt reads one receipt, nil for null.
func (r *objectReader) receipt() (*ReceiptJSON, error) {
	if r.dec.PeekKind() == 'n' {
		_, err := r.dec.ReadToken()
		return nil, err
	}
	var one ReceiptJSON
	has := 0
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case `"type"`:
			one.Type, err = r.quantity(0, &has)
		case `"status"`:
			one.Status, err = r.maybeQuantity()
		case `"root"`:
			if r.dec.PeekKind() == 'n' {
				return r.dec.SkipValue()
			}
			one.State, err = r.bytes()
		case `"cumulativeGasUsed"`:
			one.GasSoFar, err = r.quantity(receiptGas, &has)
		case `"logs"`:
			var logs []types.Log
			logs, err = r.logs()
			one.Logs, has = pointers(logs), has|receiptLogs
		case `"blockHash"`:
			err = r.fixed(one.BlockHash[:], receiptBlock, &has)
		case `"blockNumber"`:
			var number *uint64
			if number, err = r.maybeQuantity(); number != nil {
				one.Number = *number
			}
		case `"transactionHash"`:
			err = r.fixed(one.TxHash[:], receiptTx, &has)
		case `"depositNonce"`:
			one.Nonce, err = r.maybeQuantity()
		case `"depositReceiptVersion"`:
			one.NonceSince, err = r.maybeQuantity()
		default:
			err = r.dec.SkipValue()
		}
		return err
	})
	if err == nil && has != receiptAll {
		err = errors.New("a receipt without cumulativeGasUsed, logs, blockHash or transactionHash")
	}
	return &one, err
}

// pointers returns the logs in the form that go-ethereum's receipts want, without copying them.
func pointers(logs []types.Log) []*types.Log {
	list := make([]*types.Log, len(logs))
	for i := range logs {
		list[i] = &logs[i]
	}
	return list
}
