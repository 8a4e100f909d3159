package x402

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Facilitator verifies and settles payments (section 7). Client asks one over HTTP, Local is one.
//
// Verify and Settle return what is known as their result. Their error says that nothing is known:
// ErrUnavailable of Verify, ErrUnknownEnd of Settle. A payment that was settled is answered with
// the same settlement however often it is settled again.
type Facilitator interface {
	Verify(ctx context.Context, p Payment, r Requirements) (Verification, error)
	Settle(ctx context.Context, p Payment, r Requirements) (Settlement, error)
	Supported(ctx context.Context) (Supported, error)
}

// Outcome is how a transfer ended.
type Outcome struct {
	Known       bool // false: its transaction was never asked for
	Paid        bool // the token moved from the payer to the payee
	Transaction common.Hash
	Amount      Amount // what the transaction charges
	Payee       common.Address
	Token       common.Address
}

// Settler sends the transactions of transfers, each once. Outcome returns how a transfer ended that
// was sent before, by its ID. Send sends the transaction and waits for its end. Their error is
// ErrUnknownEnd while the end is open, a *Refusal where the transaction would fail or another one
// has its ID, and ErrUnavailable where nothing was sent and nothing is known.
type Settler interface {
	Outcome(ctx context.Context, t *Transfer) (Outcome, error)
	Send(ctx context.Context, t *Transfer) (Outcome, error)
}

// Local is a facilitator of this process.
type Local struct {
	Verifier *Verifier // its Accounts are those that Settler sends from
	Settler  Settler
	// History finds payments that somebody else settled: the transaction of an authorization can be sent by
	// anybody who sees it. Nil: they are refused.
	History History
	Chains  []uint64 // that are served, by id; payments on others are refused
	// Tokens reports whether a token is accepted; nil for all. Payments in others are refused
	// before the chain is asked.
	Tokens func(chainID uint64, token common.Address) bool
}

// Verify implements Facilitator. A payment that is settled or under way is not valid again.
func (l *Local) Verify(ctx context.Context, p Payment, r Requirements) (Verification, error) {
	payer := PayerOf(&p)
	err := l.known(&r)
	if err == nil {
		_, err = l.Verifier.Verify(ctx, &p, &r)
	}
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		return Verification{InvalidReason: refused.Reason, InvalidText: refused.Message, Payer: payer}, nil
	case err != nil:
		return Verification{}, err
	}
	return Verification{IsValid: true, Payer: payer}, nil
}

// Settle implements Facilitator.
func (l *Local) Settle(ctx context.Context, p Payment, r Requirements) (Settlement, error) {
	s := Settlement{Network: r.Network, Payer: PayerOf(&p)}
	t, out, err := l.settle(ctx, &p, &r)
	if t != nil {
		out, s.Dead, err = l.byOthers(ctx, &p, &r, t, out, err)
	}
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		s.ErrorReason, s.ErrorText = refused.Reason, refused.Message
		return s, nil
	case err != nil:
		return s, err
	}
	if s.Success = out.Paid; !s.Success {
		s.ErrorReason, s.ErrorText = ReasonTransactionState, "the transaction was mined and moved nothing"
	}
	if (out.Transaction != common.Hash{}) {
		s.Transaction = out.Transaction.Hex()
	}
	s.Amount = &t.Amount
	return s, nil
}

// settle looks for the payment's end before it is verified: a settled one fails verification. The transfer
// is nil where the payment is refused for what it says.
func (l *Local) settle(ctx context.Context, p *Payment, r *Requirements) (t *Transfer, out Outcome, err error) {
	if err := l.known(r); err != nil {
		return nil, out, err
	}
	if t, err = l.Verifier.Plan(p, r); err != nil {
		return nil, out, err
	}
	if out, err = l.Settler.Outcome(ctx, t); err != nil {
		return t, out, err
	}
	if out.Known {
		return t, out, t.same(&out)
	}
	verified, err := l.Verifier.Verify(ctx, p, r)
	if err != nil {
		out, err = l.faster(ctx, t, err)
		return t, out, err
	}
	if t.Scheme == SchemeUpto && t.Amount == (Amount{}) {
		return t, Outcome{Known: true, Paid: true, Token: t.Token, Payee: t.To}, nil
	}
	out, err = l.Settler.Send(ctx, verified)
	return t, out, err
}

// faster looks again for the end of a payment that is refused: another process may have settled it
// meanwhile, and then it is refused because of that.
func (l *Local) faster(ctx context.Context, t *Transfer, refusal error) (Outcome, error) {
	var refused *Refusal
	if !errors.As(refusal, &refused) {
		return Outcome{}, refusal
	}
	out, err := l.Settler.Outcome(ctx, t)
	switch {
	case err != nil:
		return out, err
	case !out.Known:
		return out, refusal
	}
	return out, t.same(&out)
}

// byOthers looks on the chain for the end of a payment that this facilitator did not settle: it is refused,
// or its transaction failed, because somebody else's was faster. dead says that the chain proves that it was
// not settled and cannot be any more. The error is ErrUnknownEnd where the authorization is used and the
// chain does not show yet what for.
func (l *Local) byOthers(ctx context.Context, p *Payment, r *Requirements, t *Transfer, own Outcome,
	failed error) (out Outcome, dead bool, err error) {
	var refused *Refusal
	if l.History == nil || own.Paid || failed != nil && !errors.As(failed, &refused) {
		return own, false, failed
	}
	if err := l.Verifier.signed(ctx, p, r, t); errors.As(err, &refused) {
		return own, false, err // others know nonces that the payer used
	} else if err != nil {
		return own, false, fmt.Errorf("%w: %w", ErrUnknownEnd, err)
	}
	e, err := l.Verifier.end(ctx, l.History, t)
	switch {
	case err != nil:
		return own, false, fmt.Errorf("%w: %w", ErrUnknownEnd, err)
	case e.paid():
		return Outcome{Known: true, Paid: true, Transaction: e.Transaction, Amount: t.Amount, Payee: t.To,
				Token: t.Token},
			false, nil
	case e.Spent && !e.Dead && (e.By == common.Hash{} || e.By != own.Transaction):
		return own, false, fmt.Errorf("%w: the authorization is used, and the chain does not show yet what for",
			ErrUnknownEnd)
	}
	return own, e.Dead, failed
}

// same refuses a transfer whose ID belongs to a transaction that pays something else.
func (t *Transfer) same(out *Outcome) error {
	if out.Amount != t.Amount || out.Payee != t.To || out.Token != t.Token {
		return Refuse(ReasonNonceUsed, "the authorization was used for another payment")
	}
	return nil
}

// known refuses chains and tokens that this facilitator does not serve.
func (l *Local) known(r *Requirements) error {
	id, err := ChainOf(r.Network)
	if err != nil {
		return err
	}
	for _, c := range l.Chains {
		if c == id && (l.Tokens == nil || l.Tokens(id, r.Asset)) {
			return nil
		} else if c == id {
			return Refuse(ReasonInvalidRequirements, "asset %s is not accepted on %s", r.Asset, r.Network)
		}
	}
	return Refuse(ReasonInvalidNetwork, "%.60s is not supported", r.Network)
}

// Supported implements Facilitator.
func (l *Local) Supported(context.Context) (Supported, error) {
	s := Supported{Kinds: []Kind{}, Extensions: []string{}, Signers: map[string][]string{}}
	for _, id := range l.Chains {
		s.Kinds = append(s.Kinds, Kind{X402Version: V2, Scheme: SchemeExact, Network: Network(id)})
		if name := Slug(id); name != "" {
			s.Kinds = append(s.Kinds, Kind{X402Version: V1, Scheme: SchemeExact, Network: name})
		}
		if l.Verifier.Accounts == nil {
			continue
		}
		accounts := l.Verifier.Accounts(id)
		for _, a := range accounts {
			if known := s.Signers["eip155:*"]; !slices.Contains(known, a.Hex()) {
				s.Signers["eip155:*"] = append(known, a.Hex())
			}
		}
		if len(accounts) > 0 {
			extra, err := json.Marshal(Extra{Facilitator: &accounts[0]})
			if err != nil {
				return s, err
			}
			s.Kinds = append(s.Kinds, Kind{X402Version: V2, Scheme: SchemeUpto, Network: Network(id), Extra: extra})
		}
	}
	return s, nil
}

// PayerOf is the payer's address as text, "" where the payload has none.
func PayerOf(p *Payment) string {
	if a := p.Payload.Payer(); (a != common.Address{}) {
		return a.Hex()
	}
	return ""
}
