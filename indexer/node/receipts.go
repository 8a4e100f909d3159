package node

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// Evidence is all that happened in one block, out of its receipts.
type Evidence struct {
	Sealed
	Logs []types.Log
	// Proven: the block's hash is that of its header, and the receipts are those that
	// the header's root commits to, so no log was left out or made up. Where a chain
	// encodes its headers or receipts in a way of its own that cannot be recomputed
	// and nothing is proven.
	Proven bool
	// Rooted: the receipts have the root that came with them, whoever made it up.
	Rooted bool
	// Shown is how many hosts of a Pool show these logs where nothing is proven.
	Shown int
}

// Spend waits until so many calls may be made; nil: at once.
type Spend func(ctx context.Context, calls int) error

func (s Spend) wait(ctx context.Context, calls int) error {
	if s == nil {
		return nil
	}
	return s(ctx, calls)
}

// Receipts gives the evidence of a canonical block: with two calls where the node has
// eth_getBlockReceipts, else with one more per transaction. spend is asked for all of
// them before they are made. ErrMoved when the node's block of
// that number is another one.
func (n *Node) Receipts(ctx context.Context, block repute.Block, spend Spend) (Evidence, error) {
	if err := spend.wait(ctx, 2); err != nil {
		return Evidence{}, err
	}
	var head *jsonrpc.Header
	var receipts []*jsonrpc.ReceiptJSON
	batch := []rpc.BatchElem{
		{Method: "eth_getBlockByNumber", Args: []any{hexutil.EncodeUint64(block.Number), false}, Result: &head},
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
	if err := batch[1].Error; err != nil && WaitingHelps(err) { // one by one they would cost more of what is short
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

// ReceiptsOf gives the evidence of blocks whose headers are known, or why there is none of
// a block, with one request. It is for a few blocks: their receipts are in memory at once.
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

// receiptsByTx is for nodes without eth_getBlockReceipts, and for those that take
// no hash there.
func (n *Node) receiptsByTx(ctx context.Context, s Sealed, spend Spend) ([]*jsonrpc.ReceiptJSON, error) {
	receipts := make([]*jsonrpc.ReceiptJSON, len(s.Txs))
	for from := 0; from < len(s.Txs); from += n.opts.MaxBatch {
		to := min(len(s.Txs), from+n.opts.MaxBatch)
		batch := make([]rpc.BatchElem, 0, to-from)
		for i := from; i < to; i++ {
			batch = append(batch, rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{s.Txs[i]},
				Result: &receipts[i]})
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

// newEvidence puts a block's receipts together. The root does not commit to where a
// log stands in the block, so that follows from counting; an answer that numbers
// its logs in another way is refused.
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
	root := types.EmptyReceiptsHash
	if len(receipts) > 0 {
		root = types.DeriveSha(receiptList(receipts), trie.NewStackTrie(nil))
	}
	e.Rooted = root == s.Root
	e.Proven = e.Rooted && s.Recomputed
	return e, nil
}

// receiptList encodes receipts as the trie under a header's root holds them.
type receiptList []*jsonrpc.ReceiptJSON

// Len implements types.DerivableList.
func (l receiptList) Len() int { return len(l) }

// EncodeIndex implements types.DerivableList: the type's byte, none for legacy
// transactions, and the list of the receipt's fields. What cannot be encoded
// leaves another root, hence nothing proven.
func (l receiptList) EncodeIndex(i int, w *bytes.Buffer) {
	r := l[i]
	if r.Type != types.LegacyTxType {
		w.WriteByte(byte(r.Type))
	}
	if err := rlp.Encode(w, fields(r)); err != nil {
		w.Reset()
	}
}

// depositType is an OP Stack deposit. Its nonce is part of the root only from the
// upgrade on that gave such receipts a version.
const depositType = 0x7e

type receiptFields struct {
	State   []byte
	Gas     uint64
	Bloom   types.Bloom
	Logs    []*types.Log
	Nonce   *uint64 `rlp:"optional"`
	Version *uint64 `rlp:"optional"`
}

func fields(r *jsonrpc.ReceiptJSON) *receiptFields {
	f := &receiptFields{State: r.State, Gas: r.GasSoFar, Logs: r.Logs,
		Bloom: types.CreateBloom(&types.Receipt{Logs: r.Logs})}
	if r.Status != nil {
		f.State = nil
		if *r.Status == types.ReceiptStatusSuccessful {
			f.State = []byte{1}
		}
	}
	if r.Type == depositType && r.NonceSince != nil {
		f.Nonce, f.Version = r.Nonce, r.NonceSince
	}
	return f
}
