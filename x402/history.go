package x402

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// History reads what happened on a chain.
type History interface {
	// Logs are those of the newest blocks of the window that have any, the oldest first, or of the block that the
	// query names by its hash. ToBlock, where it is there, is the newest block that is looked at. whole reports
	// that there are none, and that all blocks of the window were looked at. PastLogs does it.
	Logs(ctx context.Context, chainID uint64, q ethereum.FilterQuery,
		w Window) (logs []types.Log, whole bool, err error)
	// Transaction returns which contract a mined transaction called, and with what.
	Transaction(ctx context.Context, chainID uint64, hash common.Hash) (to common.Address, data []byte, err error)
	// Finalized returns number and time, in seconds since 1970, of the newest block that cannot be replaced.
	Finalized(ctx context.Context, chainID uint64) (number, seconds uint64, err error)
}

// end is what the chain shows of a transfer's authorization.
type end struct {
	Spent bool // used or canceled
	// Transaction moved exactly what the transfer says, by its authorization; zero for none.
	Transaction common.Hash
	// By is the transaction that used or canceled the authorization, where the chain tells it.
	By common.Hash
	// Dead says that the authorization did not move it and no longer can: it ended unused, a token says that it
	// was used for something else, in a block that cannot be replaced, or it was used, it has ended, and no transfer
	// that could be its own was made meanwhile. A transfer inside of the call of another contract could be: Permit2
	// has no event that names the permit, so that such a payment stays open.
	Dead bool
}

// paid reports whether the transfer was made.
func (e *end) paid() bool { return e.Transaction != (common.Hash{}) }

// errNoHistory is returned where the chain's past cannot be read.
var errNoHistory = errors.New("the chain's past cannot be read")

// end asks the chain how a transfer ended, no matter which account sent its transaction.
func (v *Verifier) end(ctx context.Context, h History, t *Transfer) (e end, err error) {
	if h == nil {
		return e, errNoHistory
	}
	// The final block is read first: what is unused after it ended there is unused for ever.
	final, seconds, err := h.Finalized(ctx, t.ChainID)
	if err != nil {
		return e, err
	}
	if e.Spent, err = v.spent(ctx, t); err != nil {
		return e, err
	}
	if !e.Spent {
		e.Dead = t.Until.Cmp(NewAmount(seconds)) < 0
		return e, nil
	}
	if t.ByToken {
		return e, t.findToken(ctx, h, final, &e)
	}
	var none bool
	e.Transaction, none, err = t.findPermit(ctx, h)
	e.Dead = none && t.Until.Cmp(NewAmount(seconds)) < 0
	return e, err
}

// topic is that of an event.
func topic(event string) common.Hash { return crypto.Keccak256Hash([]byte(event)) }

// findToken looks for the transaction by which a token moved what an authorization allows. The token's event
// of the transfer MUST follow that of the authorization: several authorizations can be used in one
// transaction, whose payer chooses what else it does.
func (t *Transfer) findToken(ctx context.Context, h History, final uint64, e *end) error {
	from := []common.Hash{common.BytesToHash(t.From[:])}
	q := ethereum.FilterQuery{Addresses: []common.Address{t.Token},
		Topics: [][]common.Hash{{topic(eventAuthorizationUsed), topic(eventAuthorizationCanceled)}, from, {t.Nonce}}}
	uses, _, err := h.Logs(ctx, t.ChainID, q, t.window())
	if err == nil && len(uses) == 0 { // it can be canceled later
		uses, _, err = h.Logs(ctx, t.ChainID, q, Window{Since: t.window().Since})
	}
	if err != nil {
		return err
	}
	for _, use := range uses {
		e.By = use.TxHash
		moves, _, err := h.Logs(ctx, t.ChainID, ethereum.FilterQuery{BlockHash: &use.BlockHash,
			Addresses: []common.Address{t.Token}, Topics: [][]common.Hash{{topic(eventTransfer)}, from}}, Window{})
		if err != nil {
			return err
		}
		if use.Topics[0] == topic(eventAuthorizationUsed) && slices.ContainsFunc(moves, func(move types.Log) bool {
			return move.TxHash == use.TxHash && move.Index == use.Index+1 && t.Paid([]types.Log{move})
		}) {
			e.Transaction = use.TxHash
			return nil
		}
		e.Dead = e.Dead || use.BlockNumber <= final
	}
	return nil
}

// maxSearches bounds how often findPermit looks further back: a payer can have paid the payee very often since.
const maxSearches = 50

// findPermit looks for the transaction by which Permit2 moved what a permit allows, among those by which
// the payer paid the payee this amount. It MUST call the proxy with this permit itself: what others do
// inside of theirs, and whether it failed, is not seen. never reports that no transfer was made that could be by
// this permit.
func (t *Transfer) findPermit(ctx context.Context, h History) (found common.Hash, never bool, err error) {
	never = true
	q := ethereum.FilterQuery{Addresses: []common.Address{t.Token}, Topics: [][]common.Hash{
		{topic(eventTransfer)}, {common.BytesToHash(t.From[:])}, {common.BytesToHash(t.To[:])}}}
	for range maxSearches {
		moves, whole, err := h.Logs(ctx, t.ChainID, q, t.window())
		if err != nil || len(moves) == 0 {
			return found, never && whole && err == nil, err
		}
		hash, others, err := t.among(ctx, h, moves)
		if err != nil || hash != (common.Hash{}) {
			return hash, false, err
		}
		never = never && others
		if moves[0].BlockNumber == 0 {
			return found, never, nil
		}
		q.ToBlock = new(big.Int).SetUint64(moves[0].BlockNumber - 1) // what was found may all be newer
	}
	return found, false, nil
}

// among returns the transaction of moves that used the transfer's permit, zero for none. others reports that each of
// them is by another permit, which its transaction itself names.
func (t *Transfer) among(ctx context.Context, h History,
	moves []types.Log) (found common.Hash, others bool, err error) {
	others = true
	seen := map[common.Hash]bool{}
	for _, move := range slices.Backward(moves) {
		if !t.Paid([]types.Log{move}) {
			continue
		}
		to, data, err := h.Transaction(ctx, t.ChainID, move.TxHash)
		if err != nil {
			return found, false, fmt.Errorf("transaction %s: %w", move.TxHash, err)
		}
		if t.permittedBy(to, data) {
			return move.TxHash, false, nil
		}
		charged, ok := Charged(to, data)
		// A transaction that deploys a wallet first can do more than the one transfer that it names.
		others = others && ok && charged == (Charge{t.Token, t.To, t.Amount}) && !seen[move.TxHash]
		seen[move.TxHash] = true
	}
	return found, others, nil
}

// permittedBy reports whether a transaction uses the transfer's permit for what the transfer says.
func (t *Transfer) permittedBy(target common.Address, data []byte) bool {
	charged, ok := Charged(target, data)
	if !ok || charged != (Charge{t.Token, t.To, t.Amount}) {
		return false
	}
	contract, call, _ := settlesBy(target, data)
	owner := 4
	if contract == UptoProxy {
		owner = 5 // the charge is before it
	}
	at := func(i int) []byte { return call[4+32*i : 4+32*(i+1)] }
	return (contract == ExactProxy || contract == UptoProxy) && common.BytesToHash(at(2)) == t.Nonce &&
		common.BytesToAddress(at(owner)) == t.From
}

// signed checks that the payer signed a payment, whatever became of it. The error is a *Refusal or ErrUnavailable.
func (v *Verifier) signed(ctx context.Context, p *Payment, r *Requirements, t *Transfer) error {
	terms, err := r.Terms()
	if err != nil {
		return err
	}
	_, _, err = v.signer(ctx, t, &p.Payload, &terms)
	return err
}
