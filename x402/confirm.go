package x402

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Confirmed is a facilitator that is believed when the chain shows what it says: one that says yes and
// never settles is found out, also where the payer cancels the authorization for it. A payment that the
// facilitator does not settle again, because it did so before and the answer was lost, or because somebody
// else sent the transaction, is found on the chain.
type Confirmed struct {
	Facilitator
	Verifier *Verifier     // its Accounts are those of the facilitator, where payments of upto are accepted
	History  History       // nil: no settlement is believed
	Wait     time.Duration // for a node that lags behind that of the facilitator; 15 s when 0
}

// pollConfirmed is the pause between questions to the chain.
const pollConfirmed = 250 * time.Millisecond

// Verify implements Facilitator. A payment whose authorization is used is not valid: the chain would
// seem to show its settlement. The error is ErrUnavailable also where the facilitator calls a payment valid
// that Verifier.Plan refuses, which is then wrapped too.
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
		return Verification{InvalidReason: ReasonNonceUsed, InvalidText: "the authorization is used",
			Payer: PayerOf(&p)}, nil
	}
	return v, nil
}

// Settle implements Facilitator. The error is ErrUnknownEnd where the chain does not show a
// settlement that the facilitator claims, or where it shows that the authorization of a payment that
// the facilitator refuses is used and not yet what for.
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

// shown waits until the chain shows the transfer of a settlement. That the authorization is used proves
// nothing: its payer can cancel it, or use it for something else.
func (c *Confirmed) shown(ctx context.Context, t *Transfer, s Settlement) (Settlement, error) {
	wait, none := c.Wait, Settlement{Network: Network(t.ChainID)}
	if wait == 0 {
		wait = 15 * time.Second
	}
	for end := time.Now().Add(wait); ; {
		e, err := c.Verifier.end(ctx, c.History, t)
		if err == nil && e.paid() {
			s.Transaction = e.Transaction.Hex() // the facilitator may name another one
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
	e, err := c.Verifier.end(ctx, c.History, t)
	switch {
	case err != nil:
		return Settlement{Network: Network(t.ChainID)}, errors.Join(ErrUnknownEnd, failed, err)
	case e.paid():
		return Settlement{Success: true, Transaction: e.Transaction.Hex(), Network: Network(t.ChainID),
			Payer:  t.From.Hex(),
			Amount: &t.Amount}, nil
	case e.Dead:
		return Settlement{Network: Network(t.ChainID), Payer: t.From.Hex(),
			ErrorReason: cmp.Or(s.ErrorReason, ReasonNonceUsed),
			ErrorText:   "the authorization moved nothing and no longer can", Dead: true}, nil
	case e.Spent:
		return Settlement{Network: Network(t.ChainID)}, errors.Join(ErrUnknownEnd,
			errors.New("the authorization is used, and its transaction is not found"), failed)
	}
	return s, failed
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
