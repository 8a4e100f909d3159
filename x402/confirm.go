package x402

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Confirmed is a facilitator that is believed when the chain shows what it says: one that says yes and
// never settles is found out. It asks the chain whether the payer's authorization is used, which
// settles a payment unless its payer canceled it at the same moment. A payment that the facilitator
// does not settle again, because it did so before and the answer was lost, is found on the chain.
type Confirmed struct {
	Facilitator
	Verifier *Verifier
	Logs     Logs          // nil: a settlement whose answer was lost stays unknown
	Wait     time.Duration // for a node that lags behind that of the facilitator; 15 s when 0
}

// Logs reads the logs of a chain: of the newest blocks where the query names none.
type Logs interface {
	Logs(ctx context.Context, chainID uint64, q ethereum.FilterQuery) ([]types.Log, error)
}

// pollConfirmed is the pause between questions to the chain.
const pollConfirmed = 250 * time.Millisecond

// Verify implements Facilitator. A payment whose authorization is used is not valid: the chain would
// seem to show its settlement.
func (c *Confirmed) Verify(ctx context.Context, p Payment, r Requirements) (Verification, error) {
	v, err := c.Facilitator.Verify(ctx, p, r)
	if err != nil || !v.IsValid {
		return v, err
	}
	t, err := c.Verifier.Plan(&p, &r)
	if err != nil {
		return Verification{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	switch spent, err := c.Verifier.spent(ctx, t); {
	case err != nil:
		return Verification{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case spent:
		return Verification{InvalidReason: ReasonNonceUsed, InvalidText: "the authorization is used", Payer: payerOf(&p)}, nil
	}
	return v, nil
}

// Settle implements Facilitator. The error is ErrUnknownEnd where the chain does not show a
// settlement that the facilitator claims, or where it shows that the authorization of a payment that
// the facilitator refuses is used.
func (c *Confirmed) Settle(ctx context.Context, p Payment, r Requirements) (Settlement, error) {
	s, err := c.Facilitator.Settle(ctx, p, r)
	if r.Scheme == SchemeUpto && r.Amount == (Amount{}) {
		return s, err
	}
	t, wrong := c.Verifier.Plan(&p, &r)
	switch {
	case wrong != nil:
		return s, fmt.Errorf("%w: %w", ErrUnknownEnd, wrong)
	case err != nil || !s.Success:
		return c.lost(ctx, t, s, err)
	}
	return c.shown(ctx, t, s)
}

// shown waits until the chain shows a settlement.
func (c *Confirmed) shown(ctx context.Context, t *Transfer, s Settlement) (Settlement, error) {
	wait, none := c.Wait, Settlement{Network: Network(t.ChainID)}
	if wait == 0 {
		wait = 15 * time.Second
	}
	for end := time.Now().Add(wait); ; {
		spent, err := c.Verifier.spent(ctx, t)
		if err == nil && spent {
			return s, nil
		}
		if time.Now().After(end) {
			return none, errors.Join(ErrUnknownEnd,
				fmt.Errorf("the facilitator claims transaction %.80q, the chain does not show it", s.Transaction), err)
		}
		select {
		case <-time.After(pollConfirmed):
		case <-ctx.Done():
			return none, fmt.Errorf("%w: %w", ErrUnknownEnd, ctx.Err())
		}
	}
}

// lost answers for a facilitator that did not settle, or did not say how it ended: it, or another
// one, can have settled the payment when it was asked before.
func (c *Confirmed) lost(ctx context.Context, t *Transfer, s Settlement, failed error) (Settlement, error) {
	spent, err := c.Verifier.spent(ctx, t)
	switch {
	case err == nil && !spent:
		return s, failed
	case err != nil:
		return s, errors.Join(ErrUnknownEnd, failed, err)
	}
	hash, err := c.find(ctx, t)
	if err != nil || hash == (common.Hash{}) {
		return Settlement{Network: Network(t.ChainID)}, errors.Join(ErrUnknownEnd,
			errors.New("the authorization is used, and its transaction is not found"), failed, err)
	}
	return Settlement{Success: true, Transaction: hash.Hex(), Network: Network(t.ChainID), Payer: t.From.Hex(),
		Amount: &t.Amount}, nil
}

// find returns the transaction by which a token moved what an authorization allows, zero where it is
// not found. The token's event of the transfer MUST follow that of the authorization: several
// authorizations can be used in one transaction, whose payer chooses what else it does.
func (c *Confirmed) find(ctx context.Context, t *Transfer) (none common.Hash, err error) {
	if c.Logs == nil || !t.ByToken {
		return none, nil // Permit2 has no event of the nonce
	}
	topic := func(name string) []common.Hash { return []common.Hash{crypto.Keccak256Hash([]byte(name))} }
	from := []common.Hash{common.BytesToHash(t.From[:])}
	uses, err := c.Logs.Logs(ctx, t.ChainID, ethereum.FilterQuery{Addresses: []common.Address{t.Token},
		Topics: [][]common.Hash{topic(eventAuthorizationUsed), from, {t.Nonce}}})
	if err != nil {
		return none, err
	}
	for _, use := range uses {
		moves, err := c.Logs.Logs(ctx, t.ChainID, ethereum.FilterQuery{BlockHash: &use.BlockHash,
			Addresses: []common.Address{t.Token}, Topics: [][]common.Hash{topic(eventTransfer), from}})
		if err != nil {
			return none, err
		}
		for _, move := range moves {
			if move.TxHash == use.TxHash && move.Index == use.Index+1 && t.Paid([]types.Log{move}) {
				return use.TxHash, nil
			}
		}
	}
	return none, nil
}

// spent reports whether the transfer's authorization is used.
func (v *Verifier) spent(ctx context.Context, t *Transfer) (bool, error) {
	state, err := v.call(ctx, t.ChainID, t.nonceKeeper(), t.nonceQuestion())
	return err == nil && used(state, t.bit()), err
}

// nonceKeeper is the contract that knows whether the authorization is used.
func (t *Transfer) nonceKeeper() common.Address {
	if t.ByToken {
		return t.Token
	}
	return Permit2
}

// nonceQuestion is the call that asks it.
func (t *Transfer) nonceQuestion() []byte {
	if t.ByToken {
		return pack(sigNonceState, nil, t.From, t.Nonce)
	}
	var n, word Amount
	n.n.SetBytes32(t.Nonce[:])
	word.n.Rsh(&n.n, 8)
	return pack(sigNonceBitmap, nil, t.From, word)
}
