package x402

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Chain reads contracts. Call executes a call in the state of the chain's newest block. The error
// is ErrReverted where the contract refuses, and another one where the chain cannot be asked.
// Calls of an address without a contract answer nothing, without an error.
type Chain interface {
	Call(ctx context.Context, chainID uint64, from, to common.Address, data []byte) ([]byte, error)
}

// Verifier verifies payments by what the chain says now.
type Verifier struct {
	Chain Chain
	// Accounts are those that settle, by chain: payments of the scheme upto MUST name one.
	Accounts func(chainID uint64) []common.Address
	Now      func() time.Time // time.Now where it is nil
}

// margin is how long an authorization MUST hold at least: transactions take a while to be mined.
const margin = 6 * time.Second

// now is the verifier's time in seconds since 1970.
func (v *Verifier) now() uint64 {
	now := time.Now
	if v.Now != nil {
		now = v.Now
	}
	return uint64(max(0, now().Unix()))
}

// Verify checks a payment against the server's own requirements (scheme_exact_evm.md), and returns
// the transfer that settles it. Where the scheme is upto, the requirements' amount is what the
// transfer charges. The error is a *Refusal, or ErrUnavailable where the chain cannot be asked.
func (v *Verifier) Verify(ctx context.Context, p *Payment, r *Requirements) (*Transfer, error) {
	t, check, err := v.plan(p, r)
	if err == nil {
		err = check(ctx)
	}
	var refused *Refusal
	if errors.As(err, &refused) && p.Payload.Payer() != (common.Address{}) {
		refused.Payer = p.Payload.Payer().Hex()
	}
	return t, err
}

// Plan checks what can be checked without the chain, but for the signature, and names the transfer:
// its ID, amount and parties, without the transaction. A settler looks up by it whether the payment
// is settled already. The error is a *Refusal.
func (v *Verifier) Plan(p *Payment, r *Requirements) (*Transfer, error) {
	t, _, err := v.plan(p, r)
	return t, err
}

// plan returns the transfer, and what is left to be checked.
func (v *Verifier) plan(p *Payment, r *Requirements) (t *Transfer, rest func(context.Context) error, err error) {
	if err := r.Check(); err != nil {
		return nil, nil, err
	}
	if err := p.Payload.check(); err != nil {
		return nil, nil, err
	}
	chain, _ := ChainOf(r.Network) // checked
	if id, err := ChainOf(p.Accepted.Network); err != nil || id != chain {
		return nil, nil, Refuse(ReasonInvalidNetwork, "the payment is for %.60s, not for %s", p.Accepted.Network, r.Network)
	}
	if p.Accepted.Scheme != r.Scheme {
		return nil, nil, Refuse(ReasonInvalidScheme, "the payment is of scheme %.40q, not %s", p.Accepted.Scheme, r.Scheme)
	}
	terms, err := r.Terms()
	if err != nil {
		return nil, nil, err
	}
	byPermit := r.Scheme == SchemeUpto || terms.Method == MethodPermit2
	t = &Transfer{Scheme: r.Scheme, ChainID: chain, Token: r.Asset, From: p.Payload.Payer(), To: r.PayTo,
		Amount: r.Amount, ByToken: !byPermit, Since: p.Payload.Since(), Until: p.Payload.Until()}
	switch {
	case byPermit && p.Payload.Permit2 == nil:
		return nil, nil, Refuse(ReasonInvalidPayload, "payload: permit2Authorization is missing")
	case !byPermit && p.Payload.Authorization == nil:
		return nil, nil, Refuse(ReasonInvalidPayload, "payload: authorization is missing")
	case byPermit:
		permit := p.Payload.Permit2
		t.Nonce = common.BytesToHash(word(permit.Nonce))
		return t, func(ctx context.Context) error { return v.permit(ctx, t, &p.Payload, &terms) },
			v.permitTerms(permit, t)
	}
	a := p.Payload.Authorization
	t.Nonce = a.Nonce
	return t, func(ctx context.Context) error { return v.authorization(ctx, t, &p.Payload, &terms) },
		authorizationTerms(a, t)
}

// authorizationTerms compares an authorization with the requirements.
func authorizationTerms(a *Authorization, t *Transfer) error {
	switch {
	case a.To != t.To:
		return Refuse(ReasonRecipient, "the authorization pays %s, not %s", a.To, t.To)
	case a.Value != t.Amount:
		return Refuse(ReasonValue, "the authorization is for %s units, the price is %s", a.Value, t.Amount)
	}
	return nil
}

// timely checks that an authorization or permit holds now, and for long enough.
func (v *Verifier) timely(t *Transfer, what string) error {
	now := v.now()
	switch {
	case t.Since.Cmp(NewAmount(now)) > 0:
		return Refuse(ReasonValidAfter, "the %s holds from %s on, it is %d", what, t.Since, now)
	case t.Until.Cmp(NewAmount(now+uint64(margin/time.Second))) < 0:
		return Refuse(ReasonValidBefore, "the %s holds until %s, it is %d, and %s more are needed", what, t.Until, now,
			margin)
	}
	return nil
}

// authorization checks times, signature and the chain's state of a transfer by EIP-3009.
func (v *Verifier) authorization(ctx context.Context, t *Transfer, p *Payload, terms *Extra) error {
	if err := v.timely(t, "authorization"); err != nil {
		return err
	}
	s, byKey, err := v.signer(ctx, t, p, terms)
	if err != nil {
		return err
	}
	t.Target, t.Data = t.Token, tokenCall(p.Authorization, s.raw, byKey)
	if (s.factory != common.Address{}) {
		t.deploying(s)
	}
	return inOrder(func() error { return v.domain(ctx, t, terms) }, func() error { return v.unused(ctx, t) },
		func() error { return v.balance(ctx, t) }, func() error { return v.simulate(ctx, t, common.Address{}) })
}

// inOrder makes checks at once, because each asks the chain, and returns the error of the first that failed in their
// order: what is wrong is told in the same way, whichever answer came first.
func inOrder(checks ...func() error) error {
	errs := make([]error, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { errs[i] = check() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// signer checks who signed, and returns the signature as contracts take it. byKey tells that the
// payer's key signed; otherwise the payer is a contract, and s names its factory where it is not
// deployed.
func (v *Verifier) signer(ctx context.Context, t *Transfer, p *Payload, terms *Extra) (s *signature, byKey bool,
	err error) {
	signed, err := digest(p.data(t.ChainID, t.Token, terms))
	if err != nil {
		return nil, false, err
	}
	parsed, err := parseSignature(p.Signature)
	if err != nil {
		return nil, false, err
	}
	if account, usual, ok := recovered(signed, parsed.raw); ok && account == t.From {
		return &signature{raw: usual}, true, nil
	}
	answer, err := v.call(ctx, t.ChainID, t.From, pack(sigValid, parsed.raw, signed))
	switch {
	case errors.Is(err, ErrUnavailable):
		return nil, false, err
	case err == nil && says(answer):
		parsed.factory = common.Address{} // it is deployed
		return &parsed, false, nil
	case err != nil || len(answer) > 0 || parsed.factory == common.Address{}:
		return nil, false, Refuse(ReasonSignature, "the signature is not one of %s", t.From)
	}
	return &parsed, false, nil // the simulation deploys the wallet, which then checks the signature
}

// domain compares the token's EIP-712 domain with the one that the requirements give: a wrong one
// gives signatures of accounts that nobody knows.
func (v *Verifier) domain(ctx context.Context, t *Transfer, terms *Extra) error {
	answer, err := v.call(ctx, t.ChainID, t.Token, selector(sigDomain))
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	own := separator(terms.Name, terms.Version, t.ChainID, t.Token)
	if err == nil && string(answer) == string(own[:]) {
		return nil
	}
	name, err := v.text(ctx, t, sigName)
	if err != nil {
		return err
	}
	version, err := v.text(ctx, t, sigVersion)
	if err != nil {
		return err
	}
	if len(answer) == 0 && name == terms.Name && version == terms.Version && name != "" {
		return nil // a token without DOMAIN_SEPARATOR: the simulation decides
	}
	return Refuse(ReasonInvalidRequirements,
		"extra: the token's EIP-712 domain is not that of name %.40q and version %.20q (it says %.40q and %.20q)",
		terms.Name, terms.Version, name, version)
}

// text asks a token for a text; "" where it has none.
func (v *Verifier) text(ctx context.Context, t *Transfer, function string) (string, error) {
	answer, err := v.call(ctx, t.ChainID, t.Token, selector(function))
	if errors.Is(err, ErrUnavailable) {
		return "", err
	}
	return readString(answer), nil
}

// unused checks that the nonce is unused.
func (v *Verifier) unused(ctx context.Context, t *Transfer) error {
	spent, err := v.spent(ctx, t)
	if errors.Is(err, ErrUnavailable) {
		return err
	}
	if spent {
		return Refuse(ReasonNonceUsed, "the authorization was used or canceled")
	}
	return nil
}

// balance checks that the payer has the amount. An answer of another form than a number's says that there is no token.
func (v *Verifier) balance(ctx context.Context, t *Transfer) error {
	balance, err := v.call(ctx, t.ChainID, t.Token, pack(sigBalance, nil, t.From))
	switch {
	case errors.Is(err, ErrUnavailable):
		return err
	case err != nil || len(balance) != 32:
		return Refuse(ReasonInvalidRequirements, "asset %s is no token on %s", t.Token, Network(t.ChainID))
	case readAmount(balance).Cmp(t.Amount) < 0:
		return Refuse(ReasonInsufficientFunds, "%s has %s units of %s, %s are needed", t.From, readAmount(balance), t.Token,
			t.Amount)
	}
	return nil
}

// simulate executes the transfer at the newest block. A token that answers false has moved nothing.
func (v *Verifier) simulate(ctx context.Context, t *Transfer, from common.Address) error {
	answer, err := v.Chain.Call(ctx, t.ChainID, from, t.Target, t.Data)
	switch {
	case errors.Is(err, ErrReverted):
		return Refuse(ReasonTransactionState, "the transfer would fail: %v", err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case t.Target == t.Token && len(answer) == 32 && readAmount(answer) == (Amount{}):
		return Refuse(ReasonTransactionState, "the token says that the transfer would fail")
	}
	return nil
}

// call asks a contract. The error is ErrReverted or ErrUnavailable.
func (v *Verifier) call(ctx context.Context, chainID uint64, to common.Address, data []byte) ([]byte, error) {
	answer, err := v.Chain.Call(ctx, chainID, common.Address{}, to, data)
	if err != nil && !errors.Is(err, ErrReverted) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return answer, err
}
