package devnet

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"repute"
)

// ErrReverted is returned when a transaction was mined and reverted.
var ErrReverted = errors.New("transaction reverted")

// Batch collects transactions for one block, in order. It belongs to one
// goroutine.
type Batch struct {
	dn    *Devnet
	calls []call
}

// call is a transaction to be. Its data may depend on the block's time.
type call struct {
	from Account
	to   *common.Address // nil creates a contract
	wei  *big.Int
	data func(at uint64) ([]byte, error)
}

// Mined is a block that was made of a batch. Receipts are in the batch's order.
type Mined struct {
	repute.Block
	Receipts types.Receipts
}

// Batch starts an empty batch.
func (d *Devnet) Batch() *Batch { return &Batch{dn: d} }

// Send adds a call of any contract; a nil to creates one from data.
func (b *Batch) Send(from Account, to *common.Address, data []byte) {
	b.add(from, to, func(uint64) ([]byte, error) { return data, nil })
}

// add adds a call without a payment.
func (b *Batch) add(from Account, to *common.Address, data func(at uint64) ([]byte, error)) {
	b.calls = append(b.calls, call{from, to, new(big.Int), data})
}

// Pay adds a payment of wei.
func (b *Batch) Pay(from Account, to common.Address, wei *big.Int) {
	b.calls = append(b.calls, call{from, &to, wei, func(uint64) ([]byte, error) { return nil, nil }})
}

// packed adapts the result of a binding's TryPack function.
func (b *Batch) packed(from Account, to common.Address, data []byte, err error) {
	b.add(from, &to, func(uint64) ([]byte, error) { return data, err })
}

// Mine makes a block of the batch, at the time that Devnet.Mine would give it,
// and empties the batch. An empty batch makes the block that Devnet.Mine makes.
// Reverted transactions are part of the block; the first one is returned
// as an ErrReverted together with the block.
func (b *Batch) Mine(ctx context.Context) (Mined, error) {
	return b.mine(ctx, b.dn.next)
}

// MineAt is Mine with the block's time given, after its parent's.
func (b *Batch) MineAt(ctx context.Context, t time.Time) (Mined, error) {
	return b.mine(ctx, func() uint64 { return uint64(t.Unix()) })
}

// mine makes the block. The time and the nonces are asked for under the lock, so that no other block comes between. The
// batch is emptied once all transactions are signed.
func (b *Batch) mine(ctx context.Context, at func() uint64) (Mined, error) {
	d := b.dn
	d.mu.Lock()
	defer d.mu.Unlock()
	time := at()
	txs, err := b.sign(time)
	if err != nil {
		return Mined{}, err
	}
	b.calls = nil
	block, err := d.seal(ctx, time, txs)
	if err != nil {
		return Mined{}, err
	}
	m := Mined{block, d.eth.BlockChain().GetReceiptsByHash(block.Hash)}
	return m, m.firstRevert()
}

// sign gives every transaction the nonce that follows on the tip and on the
// batch's own transactions before it.
func (b *Batch) sign(at uint64) (txs types.Transactions, err error) {
	nonces := map[common.Address]uint64{}
	signer := types.LatestSignerForChainID(new(big.Int).SetUint64(b.dn.opt.ChainID))
	for i, c := range b.calls {
		nonce, ok := nonces[c.from.Address]
		if !ok {
			if nonce, err = b.dn.nonce(c.from.Address); err != nil {
				return nil, err
			}
		}
		nonces[c.from.Address] = nonce + 1
		data, err := c.data(at)
		if err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		tx, err := types.SignNewTx(c.from.Key, signer, &types.DynamicFeeTx{
			ChainID: signer.ChainID(), Nonce: nonce, To: c.to, Value: c.wei, Data: data, Gas: gasFor(data),
			GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
		})
		if err != nil {
			return nil, fmt.Errorf("sign transaction %d: %w", i, err)
		}
		txs = append(txs, tx)
	}
	return txs, nil
}

// gasFor is a generous limit without asking the node. Storing a string costs
// about 700 gas a byte.
func gasFor(data []byte) uint64 {
	return min(500_000+800*uint64(len(data)), params.MaxTxGas)
}

// firstRevert names the first transaction that reverted; nil where none did.
func (m Mined) firstRevert() error {
	for i, r := range m.Receipts {
		if r.Status != types.ReceiptStatusSuccessful {
			return fmt.Errorf("transaction %d (%s) of block %d: %w", i, r.TxHash, m.Number, ErrReverted)
		}
	}
	return nil
}
