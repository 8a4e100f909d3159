package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// Evidence holds all logs of one block, taken from its receipts.
type Evidence struct {
	Sealed
	Logs []types.Log
	// Proven reports whether the hash of the block is the hash of its header and the receipts have
	// the header's receipts root, so that no log is missing or invented. It is false on chains
	// whose headers or receipts have another encoding.
	Proven bool
	// Rooted reports whether the receipts have the root that the endpoint returned with them, which
	// may be invented.
	Rooted bool
	// Shown is how many hosts of a Pool return the same logs where nothing is proven.
	Shown int
}

// Spend waits until that many calls may be made. Nil: no limit.
type Spend func(ctx context.Context, calls int) error

// wait calls s if it is set.
func (s Spend) wait(ctx context.Context, calls int) error {
	if s == nil {
		return nil
	}
	return s(ctx, calls)
}

// Receipts returns the evidence of a canonical block: with two calls where the node has
// eth_getBlockReceipts, otherwise with one more call per transaction. spend is called for all of
// them before they are made. It returns ErrMoved if the node's block of that number is another one.
func (n *Node) Receipts(ctx context.Context, block repute.Block, spend Spend) (Evidence, error) {
	if err := spend.wait(ctx, 2); err != nil {
		return Evidence{}, err
	}
	var head *jsonrpc.Header
	var receipts []*jsonrpc.ReceiptJSON
	batch := []rpc.BatchElem{
		byNumber(block.Number, &head),
		{Method: "eth_getBlockReceipts", Args: []any{block.Hash}, Result: &receipts},
	}
	if err := n.BatchCallContext(ctx, batch); err != nil {
		return Evidence{}, err
	}
	if err := batch[0].Error; err != nil {
		return Evidence{}, n.wrap("eth_getBlockByNumber", err)
	}
	sealed, err := sealed(head)
	if err == nil && (sealed.Hash != block.Hash || sealed.Number != block.Number) {
		err = ErrMoved
	}
	if err != nil {
		return Evidence{}, n.wrap(fmt.Sprintf("block %d", block.Number), err)
	}
	if err := batch[1].Error; err != nil && WaitingHelps(err) { // single receipts would cost more of the exhausted limit
		return Evidence{}, n.wrap("eth_getBlockReceipts", err)
	}
	if batch[1].Error != nil || receipts == nil && len(sealed.Txs) > 0 {
		if receipts, err = n.receiptsByTx(ctx, sealed, spend); err != nil {
			return Evidence{}, err
		}
	}
	e, err := newEvidence(sealed, receipts)
	if err != nil {
		return Evidence{}, n.wrap(fmt.Sprintf("receipts of block %d", block.Number), err)
	}
	return e, nil
}

// ReceiptsOf returns the evidence of blocks whose headers are known, or the error of each block,
// with one request. It is for a few blocks, because all their receipts are in memory at the same
// time.
func (n *Node) ReceiptsOf(ctx context.Context, blocks []Sealed) ([]Evidence, []error, error) {
	receipts := make([][]*jsonrpc.ReceiptJSON, len(blocks))
	batch := make([]rpc.BatchElem, len(blocks))
	for i := range blocks {
		batch[i] = rpc.BatchElem{Method: "eth_getBlockReceipts", Args: []any{blocks[i].Hash}, Result: &receipts[i]}
	}
	if err := n.BatchCallContext(ctx, batch); err != nil {
		return nil, nil, err
	}
	out, errs := make([]Evidence, len(blocks)), make([]error, len(blocks))
	for i := range blocks {
		errs[i] = batch[i].Error
		if errs[i] == nil {
			out[i], errs[i] = newEvidence(blocks[i], receipts[i])
		}
		if errs[i] != nil {
			errs[i] = n.wrap(fmt.Sprintf("receipts of block %d", blocks[i].Number), errs[i])
		}
	}
	return out, errs, nil
}

// receiptsByTx requests receipts per transaction, for nodes without eth_getBlockReceipts or whose
// method takes no hash.
func (n *Node) receiptsByTx(ctx context.Context, s Sealed, spend Spend) ([]*jsonrpc.ReceiptJSON, error) {
	receipts := make([]*jsonrpc.ReceiptJSON, 0, len(s.Txs)) // never grown: elements point into it
	for part := range slices.Chunk(s.Txs, n.opts.MaxBatch) {
		batch := make([]rpc.BatchElem, len(part))
		for i, tx := range part {
			receipts = append(receipts, nil)
			batch[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{tx},
				Result: &receipts[len(receipts)-1]}
		}
		if err := spend.wait(ctx, len(batch)); err != nil {
			return nil, err
		}
		if err := n.BatchCallContext(ctx, batch); err != nil {
			return nil, err
		}
		for _, e := range batch {
			if e.Error != nil {
				return nil, n.wrap(e.Method, e.Error)
			}
		}
	}
	return receipts, nil
}

// newEvidence checks the receipts of a block and collects their logs. The root does not commit to
// the index of a log in its block, which follows from counting; an answer with other indexes is
// refused.
func newEvidence(s Sealed, receipts []*jsonrpc.ReceiptJSON) (Evidence, error) {
	e := Evidence{Sealed: s}
	if len(s.Txs) != len(receipts) {
		return e, &jsonrpc.AnswerError{What: fmt.Sprintf("%d receipts of %d transactions", len(receipts), len(s.Txs))}
	}
	for i, r := range receipts {
		if r == nil || r.BlockHash != s.Hash || r.TxHash != s.Txs[i] {
			return e, &jsonrpc.AnswerError{What: fmt.Sprintf("receipt %d is of another block or transaction", i)}
		}
		for _, l := range r.Logs {
			if l.BlockHash != s.Hash || l.TxHash != r.TxHash || l.Removed {
				return e, &jsonrpc.AnswerError{What: fmt.Sprintf("receipt %d has a log of another block or transaction", i)}
			}
			if l.Index != uint(len(e.Logs)) || l.TxIndex != uint(i) {
				return e, &jsonrpc.AnswerError{What: fmt.Sprintf("log %d of the block has index %d in transaction %d instead of %d", len(e.Logs), l.Index, l.TxIndex, i)}
			}
			l.BlockNumber, l.BlockTimestamp = s.Number, uint64(s.Time.Unix())
			e.Logs = append(e.Logs, *l)
		}
	}
	e.Rooted = jsonrpc.ReceiptsRoot(receipts) == s.Root
	e.Proven = e.Rooted && s.Recomputed
	return e, nil
}

// TransactionPlace is the place of a transaction according to an endpoint. The receipts of the block prove
// it.
type TransactionPlace struct {
	Block     repute.Block // number and hash alone
	Succeeded bool
}

// Transaction requests the place of a transaction; nil if the endpoint does not know it.
func (n *Node) Transaction(ctx context.Context, tx common.Hash) (*TransactionPlace, error) {
	var receipt *jsonrpc.ReceiptJSON
	if err := n.CallContext(ctx, &receipt, "eth_getTransactionReceipt", tx); err != nil {
		return nil, err
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
