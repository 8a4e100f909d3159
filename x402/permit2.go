package x402

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// permitTerms compares a permit with the requirements. In the scheme upto the requirements' amount
// is what is charged, which may be less than what was signed.
func (v *Verifier) permitTerms(p *Permit, t *Transfer) error {
	spender, over := ExactProxy, p.Permitted.Amount != t.Amount
	if t.Scheme == SchemeUpto {
		spender, over = UptoProxy, t.Amount.Cmp(p.Permitted.Amount) > 0
	}
	switch {
	case p.Spender != spender:
		return Refuse(ReasonSpender, "the permit is for %s, not for %s", p.Spender, spender)
	case p.Permitted.Token != t.Token:
		return Refuse(ReasonInvalidPayload, "the permit is for token %s, not for %s", p.Permitted.Token, t.Token)
	case p.Witness.To != t.To:
		return Refuse(ReasonRecipient, "the permit pays %s, not %s", p.Witness.To, t.To)
	case t.Scheme == SchemeExact && over:
		return Refuse(ReasonValue, "the permit is for %s units, the price is %s", p.Permitted.Amount, t.Amount)
	case over:
		return Refuse(ReasonExceedsAmount, "%s units are to be charged, the permit is for %s", t.Amount,
			p.Permitted.Amount)
	case t.Scheme == SchemeExact && p.Witness.Facilitator != nil:
		return Refuse(ReasonInvalidPayload, "the permit names a facilitator: only those of the scheme upto do")
	case t.Scheme == SchemeUpto && (p.Witness.Facilitator == nil || v.Accounts == nil ||
		!slices.Contains(v.Accounts(t.ChainID), *p.Witness.Facilitator)):
		return Refuse(ReasonFacilitator, "the permit does not name an account of this facilitator")
	}
	return nil
}

// permit checks times, signature and the chain's state of a transfer by Permit2.
func (v *Verifier) permit(ctx context.Context, t *Transfer, p *Payload, terms *Extra) error {
	if err := v.timely(t, "permit"); err != nil {
		return err
	}
	s, _, err := v.signer(ctx, t, p, terms)
	if err != nil {
		return err
	}
	permit := p.Permit2
	t.Target, t.Data = permit.Spender, proxyCall(permit, s.raw, t.Amount)
	if (s.factory != common.Address{}) {
		if t.Scheme == SchemeUpto {
			return Refuse(ReasonUnsupportedScheme,
				"a wallet that is not deployed cannot pay by upto: the proxy takes calls of the facilitator alone")
		}
		t.deploying(s)
	}
	var from common.Address
	if permit.Witness.Facilitator != nil {
		from = *permit.Witness.Facilitator
	}
	return inOrder(func() error { return v.unused(ctx, t) }, func() error { return v.balance(ctx, t) },
		func() error { return v.allowance(ctx, t) }, func() error { return v.simulate(ctx, t, from) })
}

// allowance checks that the payer has approved the token for Permit2.
func (v *Verifier) allowance(ctx context.Context, t *Transfer) error {
	allowed, err := v.call(ctx, t.ChainID, t.Token, pack(sigAllowance, nil, t.From, Permit2))
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	if readAmount(allowed).Cmp(t.Amount) < 0 {
		return Refuse(ReasonAllowance, "%s allows Permit2 (%s) %s units of %s, %s are needed: approve it once", t.From,
			Permit2, readAmount(allowed), t.Token, t.Amount)
	}
	return nil
}

// bit is the place of the transfer's nonce in the answer about it: Permit2 keeps 256 nonces in a
// word, tokens answer true or false.
func (t *Transfer) bit() uint {
	if t.ByToken {
		return 0
	}
	return uint(t.Nonce[31])
}

// used reports whether an answer of 32 bytes has a bit set.
func used(answer []byte, bit uint) bool {
	return len(answer) == 32 && answer[31-bit/8]&(1<<(bit%8)) != 0
}
