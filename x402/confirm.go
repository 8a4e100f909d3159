package x402

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Confirmed is a facilitator whose settlements are believed when the chain shows them: one that says
// yes and never settles is found out. It asks the chain whether the payer's authorization is used,
// which settles a payment unless its payer canceled it at the same moment.
type Confirmed struct {
	Facilitator
	Verifier *Verifier
	Wait     time.Duration // for a node that lags behind that of the facilitator; 15 s when 0
}

// pollConfirmed is the pause between questions to the chain.
const pollConfirmed = 250 * time.Millisecond

// Settle implements Facilitator. The error is ErrUnknownEnd where the chain does not show a
// settlement that the facilitator claims.
func (c *Confirmed) Settle(ctx context.Context, p Payment, r Requirements) (Settlement, error) {
	s, err := c.Facilitator.Settle(ctx, p, r)
	if err != nil || !s.Success || r.Scheme == SchemeUpto && r.Amount == (Amount{}) {
		return s, err
	}
	t, err := c.Verifier.Plan(&p, &r)
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrUnknownEnd, err)
	}
	wait := c.Wait
	if wait == 0 {
		wait = 15 * time.Second
	}
	for end := time.Now().Add(wait); ; {
		spent, err := c.Verifier.spent(ctx, t)
		if err == nil && spent {
			return s, nil
		}
		if time.Now().After(end) {
			return Settlement{Network: r.Network}, errors.Join(ErrUnknownEnd,
				fmt.Errorf("the facilitator claims transaction %.80q, the chain does not show it", s.Transaction), err)
		}
		select {
		case <-time.After(pollConfirmed):
		case <-ctx.Done():
			return Settlement{Network: r.Network}, fmt.Errorf("%w: %w", ErrUnknownEnd, ctx.Err())
		}
	}
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
