package synth

import (
	"encoding/binary"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// transaction is a call of a registry with the logs it left.
type transaction struct {
	to   common.Address
	logs []*types.Log
}

// block is what the index keeps of a block. Number, parent hash and time follow
// from its place.
type block struct {
	hash, txRoot, receiptRoot common.Hash
	bloom                     types.Bloom
	offset                    uint64 // of its lines
	firstTx                   uint64 // transactions before it
	txs, logs                 uint32
}

// blockSize is the size of every block in the index, in bytes: a block is found by multiplying.
const blockSize = 3*common.HashLength + types.BloomByteLength + 8 + 8 + 4 + 4

// append writes the block in blockSize bytes. Another form needs another layout: files of earlier runs are read as they
// are.
func (b *block) append(to []byte) []byte {
	to = append(to, b.hash[:]...)
	to = append(to, b.txRoot[:]...)
	to = append(to, b.receiptRoot[:]...)
	to = append(to, b.bloom[:]...)
	to = binary.LittleEndian.AppendUint64(to, b.offset)
	to = binary.LittleEndian.AppendUint64(to, b.firstTx)
	to = binary.LittleEndian.AppendUint32(to, b.txs)
	return binary.LittleEndian.AppendUint32(to, b.logs)
}

// readBlock reads what append wrote; raw must hold blockSize bytes.
func readBlock(raw []byte) (b block) {
	for _, field := range [][]byte{b.hash[:], b.txRoot[:], b.receiptRoot[:], b.bloom[:]} {
		raw = raw[copy(field, raw):]
	}
	b.offset = binary.LittleEndian.Uint64(raw)
	b.firstTx = binary.LittleEndian.Uint64(raw[8:])
	b.txs = binary.LittleEndian.Uint32(raw[16:])
	b.logs = binary.LittleEndian.Uint32(raw[20:])
	return b
}

// txGas is what every transaction uses, whatever it does: nothing is executed.
const txGas = 21_000

// blockTime is the time of a block in Unix seconds. Blocks come at one pace, so that none is stored.
func blockTime(number uint64) uint64 { return genesisTime + blockSeconds*number }

// header is the whole header of a block.
func (b *block) header(number uint64, parent common.Hash, seed uint64) *types.Header {
	h := &types.Header{ParentHash: parent, UncleHash: types.EmptyUncleHash, Root: types.EmptyRootHash,
		TxHash: b.txRoot, ReceiptHash: b.receiptRoot, Bloom: b.bloom, Difficulty: new(big.Int),
		Number: new(big.Int).SetUint64(number), GasLimit: 1_000_000_000, GasUsed: uint64(b.txs) * txGas,
		Time: blockTime(number), BaseFee: big.NewInt(7)}
	if number == 0 { // histories of two seeds have no block in common
		h.Extra = binary.BigEndian.AppendUint64(nil, seed)
	}
	return h
}

// chainTx is the transaction with a number, counted over the whole chain. Its
// signature is well-formed but nobody's.
func chainTx(n uint64, to common.Address) *types.Transaction {
	return types.NewTx(&types.LegacyTx{Nonce: n, To: &to, Gas: txGas, GasPrice: big.NewInt(7),
		Value: new(big.Int), V: big.NewInt(27), R: common.Big1, S: common.Big1})
}

// receipt is that of the block's i-th transaction, without its place.
func receipt(i int, tx common.Hash, logs []*types.Log) *types.Receipt {
	r := &types.Receipt{Status: types.ReceiptStatusSuccessful, TxHash: tx, GasUsed: txGas,
		CumulativeGasUsed: uint64(i+1) * txGas, TransactionIndex: uint(i), Logs: logs}
	r.Bloom = types.CreateBloom(r)
	return r
}

// seal computes roots, bloom and hash of the block that follows parent, and
// fills in the positions of the logs.
func seal(number uint64, parent common.Hash, seed, firstTx uint64, list []transaction) *block {
	b := &block{txRoot: types.EmptyTxsHash, receiptRoot: types.EmptyReceiptsHash, firstTx: firstTx,
		txs: uint32(len(list))}
	if len(list) > 0 {
		b.roots(list)
	}
	b.hash = b.header(number, parent, seed).Hash()
	for _, tx := range list {
		for _, l := range tx.logs {
			l.BlockNumber, l.BlockHash, l.BlockTimestamp = number, b.hash, blockTime(number)
		}
	}
	return b
}

// roots makes the transactions and receipts of a block, whose roots and bloom its header commits to, and gives the
// logs their place in it.
func (b *block) roots(list []transaction) {
	txs, receipts := make(types.Transactions, len(list)), make(types.Receipts, len(list))
	for i, tx := range list {
		txs[i] = chainTx(b.firstTx+uint64(i), tx.to)
		receipts[i] = receipt(i, txs[i].Hash(), tx.logs)
		for _, l := range tx.logs {
			l.TxHash, l.TxIndex, l.Index = receipts[i].TxHash, uint(i), uint(b.logs)
			b.logs++
		}
	}
	b.txRoot = types.DeriveSha(txs, trie.NewStackTrie(nil))
	b.receiptRoot = types.DeriveSha(receipts, trie.NewStackTrie(nil))
	b.bloom = types.MergeBloom(receipts)
}
