package jsonrpc

import (
	"bytes"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// ReceiptsRoot returns the root of the trie of a block's receipts, as in the block's header.
func ReceiptsRoot(receipts []*ReceiptJSON) common.Hash {
	if len(receipts) == 0 {
		return types.EmptyReceiptsHash
	}
	return types.DeriveSha(receiptList(receipts), trie.NewStackTrie(nil))
}

// receiptList encodes receipts as the leaves of the trie whose root is in the header.
type receiptList []*ReceiptJSON

// Len implements types.DerivableList.
func (l receiptList) Len() int { return len(l) }

// EncodeIndex implements types.DerivableList: the byte of the type, absent for legacy transactions,
// and the list of the receipt's fields. A receipt that cannot be encoded produces another root, so
// that nothing is proven.
func (l receiptList) EncodeIndex(i int, w *bytes.Buffer) {
	r := l[i]
	if r.Type != types.LegacyTxType {
		w.WriteByte(byte(r.Type))
	}
	if err := rlp.Encode(w, fields(r)); err != nil {
		w.Reset()
	}
}

// depositType is the type of an OP Stack deposit. Its nonce is part of the root only after the
// upgrade that added a version to such receipts.
const depositType = 0x7e

type receiptFields struct {
	State   []byte
	Gas     uint64
	Bloom   types.Bloom
	Logs    []*types.Log
	Nonce   *uint64 `rlp:"optional"`
	Version *uint64 `rlp:"optional"`
}

// fields returns the consensus fields of a receipt in the order of their encoding.
func fields(r *ReceiptJSON) *receiptFields {
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
