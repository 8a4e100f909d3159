package node

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// TransactionPlace is the place of a transaction according to an endpoint. The receipts of the block prove
// it.
type TransactionPlace struct {
	Block     repute.Block // number and hash alone
	Succeeded bool
}

// Transaction requests the place of a transaction; nil if the endpoint does not know it.
func (n *Node) Transaction(ctx context.Context, tx common.Hash) (*TransactionPlace, error) {
	var receipt *jsonrpc.ReceiptJSON
	batch := []rpc.BatchElem{{Method: "eth_getTransactionReceipt", Args: []any{tx}, Result: &receipt}}
	if err := n.BatchCallContext(ctx, batch); err != nil {
		return nil, err
	}
	if err := batch[0].Error; err != nil {
		return nil, n.wrap("eth_getTransactionReceipt", err)
	}
	if receipt == nil {
		return nil, nil
	}
	if receipt.TxHash != tx {
		return nil, n.wrap("eth_getTransactionReceipt",
			&jsonrpc.AnswerError{What: fmt.Sprintf("the receipt of %s instead", receipt.TxHash)})
	}
	at := repute.Block{Number: receipt.Number, Hash: receipt.BlockHash}
	return &TransactionPlace{Block: at, Succeeded: receipt.Status == nil || *receipt.Status == types.ReceiptStatusSuccessful}, nil
}

// Transaction requests the place of a transaction from one endpoint after another until one knows it.
// It returns nil if none of those that answer does.
func (p *Pool) Transaction(ctx context.Context, tx common.Hash) (found *TransactionPlace, err error) {
	answered := false
	err = p.first(ctx, p.having(0), func(m *peer) error {
		l, err := m.Transaction(ctx, tx)
		if err != nil {
			return err
		}
		if answered = true; l == nil {
			return m.wrap("eth_getTransactionReceipt", jsonrpc.ErrNoBlock)
		}
		found = l
		return nil
	})
	if answered && ctx.Err() == nil {
		return found, nil
	}
	return found, err
}

// Matching is Node.Matching with failover.
func (p *Pool) Matching(ctx context.Context, r repute.BlockRange, addresses []common.Address,
	topics [][]common.Hash) (logs []types.Log, err error) {
	err = p.first(ctx, p.having(r.To), func(m *peer) error {
		logs, err = m.Matching(ctx, r, addresses, topics)
		return err
	})
	return logs, err
}
