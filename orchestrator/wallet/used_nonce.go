package wallet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"repute/store/walletdb"
)

// nonceTaken ends an intent whose nonce another transaction used. A missing receipt proves nothing,
// because nodes lag, prune and lie. The intent fails only if as many endpoints as confirm a
// transaction return the same other transaction in a confirmed block, signed by the account with
// that nonce. Until then it stays open, with a note.
func (f *follower) nonceTaken(ctx context.Context, in walletdb.Intent) (walletdb.Intent, error) {
	if f.foreign++; f.foreign%foreignSeen != 0 {
		return in, nil
	}
	other, why, err := f.c.otherOf(ctx, &in)
	if err != nil {
		return in, err
	}
	now, err := walletdb.ReadIntent(ctx, f.w.db, in.ID) // another process may have signed a dearer form
	if err != nil || now.State.Final() {
		return now, err
	}
	if other == (common.Hash{}) || hasForm(&now, other) {
		f.note = fmt.Sprintf(" (nonce %d of %s is used, but %s)", in.Nonce, in.From, why)
		f.w.log.Warn("transaction: nonce used by an unknown transaction", "intent", in.ID, "chain", in.ChainID, "from",
			in.From,
			"nonce", in.Nonce, "why", why)
		return now, nil
	}
	reason := fmt.Sprintf("transaction %s has nonce %d of %s: the key is in use elsewhere", other, in.Nonce, in.From)
	f.w.log.Error("transaction: nonce taken", "intent", in.ID, "chain", in.ChainID, "from", in.From, "nonce", in.Nonce,
		"by", other)
	if err := walletdb.MarkIntent(ctx, f.w.db, in.ID, walletdb.IntentFailed, walletdb.Mining{}, reason); err != nil {
		return in, err
	}
	return walletdb.ReadIntent(ctx, f.w.db, in.ID)
}

// otherOf finds the transaction that used an intent's nonce and is none of its forms. It returns the zero hash if
// there is not enough evidence; why is what is missing. One endpoint that shows no such transaction, or one of the
// intent's own, is enough for that: ending an intent that is mined later would have the caller send it again.
func (c *chain) otherOf(ctx context.Context, in *walletdb.Intent) (other common.Hash, why string, err error) {
	agree := 0
	for _, e := range c.nodes {
		seen, err := c.usedBy(ctx, e, in)
		switch {
		case ctx.Err() != nil:
			return common.Hash{}, "", err
		case err != nil:
			why = err.Error()
			continue
		case seen == common.Hash{}:
			return seen, e.name + " shows no transaction that used it", nil
		case hasForm(in, seen):
			return common.Hash{}, e.name + " shows our transaction " + seen.Hex() + " without a receipt", nil
		case agree > 0 && seen != other:
			return common.Hash{}, "endpoints show different transactions", nil
		}
		other = seen
		agree++
	}
	if agree < c.quorum() {
		if why == "" {
			why = "too few endpoints answer"
		}
		return common.Hash{}, why, nil
	}
	return other, "", nil
}

// hasForm reports whether a hash is that of one of the intent's signed forms.
func hasForm(in *walletdb.Intent, hash common.Hash) bool {
	return slices.ContainsFunc(in.Attempts, func(a walletdb.IntentAttempt) bool { return a.Hash == hash })
}

// usedBy returns the transaction with an intent's nonce in a confirmed block of an endpoint, also
// if a receipt shows that it is one of the intent's own forms. The zero hash means that there is
// none.
func (c *chain) usedBy(ctx context.Context, e *endpoint, in *walletdb.Intent) (common.Hash, error) {
	for _, a := range slices.Backward(in.Attempts) {
		if r, err := e.receipt(ctx, a.Hash); err != nil || r != nil {
			return a.Hash, err
		}
	}
	latest, err := e.block(ctx, "latest")
	if err != nil {
		return common.Hash{}, err
	}
	deep := uint64(latest.Number) - min(uint64(latest.Number), c.Confirmations-1)
	at, found, err := e.blockOfNonce(ctx, in.From, in.Nonce, deep)
	if err != nil || !found {
		return common.Hash{}, err
	}
	return e.transactionOf(ctx, c.id, in, at)
}

// blockOfNonce returns the block, at most last, in which a nonce was used. It searches backwards in
// doubling steps, because many nodes keep only recent state.
func (e *endpoint) blockOfNonce(ctx context.Context, of common.Address, nonce, last uint64) (at uint64, found bool,
	err error) {
	used := func(block uint64) (bool, error) {
		n, err := e.nonce(ctx, of, hexutil.EncodeUint64(block))
		return n > nonce, err
	}
	if is, err := used(last); err != nil || !is {
		return 0, false, err
	}
	high, low := last, uint64(0) // used at high; not at low, or low is the first block
	for step := uint64(1); high > 0; step *= 2 {
		at := high - min(high, step)
		is, err := used(at)
		if err != nil {
			return 0, false, err
		}
		if !is {
			low = at
			break
		}
		high = at
	}
	for low+1 < high {
		middle := low + (high-low)/2
		is, err := used(middle)
		if err != nil {
			return 0, false, err
		}
		if is {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true, nil
}

// maxSeen bounds the transactions of a block that are searched.
const maxSeen = 100_000

// transactionOf finds the transaction of a block that the account of an intent signed with its
// nonce. The signature is verified, so that only its inclusion depends on the endpoint.
func (e *endpoint) transactionOf(ctx context.Context, chainID *big.Int, in *walletdb.Intent,
	block uint64) (common.Hash, error) {
	var b *struct {
		Transactions []common.Hash `json:"transactions"`
	}
	if err := e.call(ctx, &b, "eth_getBlockByNumber", hexutil.EncodeUint64(block), false); err != nil {
		return common.Hash{}, e.failed("block with transactions", err)
	}
	if b == nil || len(b.Transactions) > maxSeen {
		return common.Hash{}, e.failed("block with transactions", errors.New("not there"))
	}
	for part := range slices.Chunk(b.Transactions, readAtOnce) {
		found, err := e.transactionAmong(ctx, chainID, in, part)
		if err != nil || found != (common.Hash{}) {
			return found, err
		}
	}
	return common.Hash{}, nil
}

// readAtOnce is how many transactions one request reads, because a whole block may exceed the
// largest answer.
const readAtOnce = 100

// transactionAmong is transactionOf for a part of a block's transactions.
func (e *endpoint) transactionAmong(ctx context.Context, chainID *big.Int, in *walletdb.Intent,
	hashes []common.Hash) (common.Hash, error) {
	texts, batch := make([]json.RawMessage, len(hashes)), make([]rpc.BatchElem, len(hashes))
	for i, hash := range hashes {
		batch[i] = rpc.BatchElem{Method: "eth_getTransactionByHash", Args: []any{hash}, Result: &texts[i]}
	}
	if err := e.batch(ctx, batch); err != nil {
		return common.Hash{}, e.failed("transactions of block", err)
	}
	for i, raw := range texts {
		var head struct {
			From  common.Address `json:"from"`
			Nonce hexutil.Uint64 `json:"nonce"`
		}
		if batch[i].Error != nil {
			return common.Hash{}, e.failed("transaction of block", batch[i].Error)
		}
		if json.Unmarshal(raw, &head) != nil || head.From != in.From || uint64(head.Nonce) != in.Nonce {
			continue
		}
		tx := new(types.Transaction)
		if err := tx.UnmarshalJSON(raw); err != nil {
			return common.Hash{}, e.failed("transaction of block", err)
		}
		if by, err := types.Sender(types.LatestSignerForChainID(chainID), tx); err != nil || by != in.From ||
			tx.Nonce() != in.Nonce {
			return common.Hash{}, e.failed("transaction of block",
				errors.New("its signature is not that of "+in.From.Hex()))
		}
		return tx.Hash(), nil
	}
	return common.Hash{}, nil
}
