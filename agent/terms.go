package agent

import (
	"encoding/json"
	"fmt"
	"math/big"

	"repute/store/agentdb"
	"repute/x402"
)

// terms are what a payment is for. They are stored with its claim and hold for it from then on, whatever the
// configuration says later.
type terms struct {
	Requirements x402.Requirements `json:"requirements"` // of a promise: amount and network alone
	Currency     string            `json:"currency"`
	Decimals     uint8             `json:"decimals"`
	ChargeFrom   string            `json:"chargeFrom,omitempty"` // see Price
}

// terms are those of the price for requirements that were taken from it.
func (p *Price) terms(r x402.Requirements) terms {
	way := p.way(&r)
	return terms{r, way.Symbol, way.Decimals, p.ChargeFrom}
}

// promised are the terms of a promise of an amount.
func (p *Price) promised(amount *big.Int, chainID uint64) (t terms, err error) {
	t = terms{x402.Requirements{Network: x402.Network(chainID)}, p.Currency, p.Decimals, ""}
	t.Requirements.Amount, err = x402.AmountOf(amount)
	return t, err
}

// termsOf reads the terms of a stored payment.
func termsOf(row *agentdb.Payment) (t terms, err error) {
	if err := json.Unmarshal(row.Terms, &t); err != nil {
		return t, fmt.Errorf("stored terms: %w", err)
	}
	return t, nil
}

// asset is the address of the token that pays. A promise, which moves none, names its currency there.
func (t *terms) asset() string {
	if t.Requirements.Scheme == "" {
		return t.Currency
	}
	return t.Requirements.Asset.Hex()
}

// charge returns the requirements to settle. For the scheme upto the amount is read from the output at
// ChargeFrom, and MUST NOT exceed the maximum that the terms name.
func (t *terms) charge(output json.RawMessage) (x402.Requirements, error) {
	r := t.Requirements
	if r.Scheme != x402.SchemeUpto || t.ChargeFrom == "" {
		return r, nil
	}
	text, err := pointed(output, t.ChargeFrom)
	if err != nil {
		return r, err
	}
	amount, err := Units(text, t.Decimals)
	if err != nil {
		return r, err
	}
	if amount.Cmp(r.Amount) > 0 {
		return r, fmt.Errorf("the output charges %s units, %s at most are allowed", amount, r.Amount)
	}
	r.Amount = amount
	return r, nil
}
