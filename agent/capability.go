package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"repute"
	"repute/agent/capability"
	"repute/x402"
)

// Handler does the work of a capability. What its error says is logged and never shown to clients.
type Handler interface {
	Run(ctx context.Context, call capability.Call) (json.RawMessage, error)
}

// Service is a capability with its handler and the ways in which it is paid.
type Service struct {
	*capability.Capability
	Handler Handler
	// Price is nil for a free capability.
	Price *Price
	// Repeatable says that the handler may be called again for a payment whose process was killed
	// while it ran. Otherwise such a payment ends without an answer.
	Repeatable bool
}

// Price is what a capability costs.
type Price struct {
	// Amount in whole units, Currency and Decimals are what clients of the specification are told,
	// and what promises are for.
	Amount   string
	Currency string
	Decimals uint8
	// Ways are how it is paid by x402. None: by promise only.
	Ways []Way
	// ChargeFrom is a JSON Pointer (RFC 6901) into the output, to the amount that is charged by the
	// scheme upto, as a decimal in whole units. Empty: the whole price is.
	ChargeFrom string
}

// Way is a token that a price can be paid in.
type Way struct {
	x402.Requirements
	Symbol   string
	Decimals uint8
}

// check returns repute.ErrInvalid where a service cannot be served, naming its field.
func (s *Service) check(promises bool) error {
	if s.Capability == nil {
		return repute.Invalid("capabilities", "one is not defined", "a definition for each")
	}
	field := "capabilities." + s.Definition().Name
	switch {
	case s.Handler == nil:
		return repute.Invalid(field+".handler", "is missing", "a handler")
	case s.Price == nil:
		return nil
	case len(s.Price.Ways) == 0 && !promises:
		return repute.Invalid(field+".pricing",
			fmt.Sprintf("%s %s cannot be paid by x402", s.Price.Amount, s.Price.Currency),
			"tokens to pay with, or payments.promises: true, by which no money moves")
	}
	if _, err := Units(s.Price.Amount, s.Price.Decimals); err != nil {
		return fmt.Errorf("%s.pricing: %w", field, err)
	}
	for i := range s.Price.Ways {
		if err := s.Price.Ways[i].Check(); err != nil {
			return repute.Invalid(field+".pricing", err.Error(), "an amount, a token and a payee that x402 can move")
		}
	}
	return nil
}

// settlesBefore reports whether a payment by these requirements is settled before the handler runs.
func (s *Service) settlesBefore(r *x402.Requirements) bool {
	d := s.Definition()
	return d.Settle == capability.SettleBefore && r.Scheme == x402.SchemeExact
}

// accepts are the requirements of a price.
func (p *Price) accepts() (out []x402.Requirements) {
	for _, w := range p.Ways {
		out = append(out, w.Requirements)
	}
	return out
}

// way returns the token of requirements that were taken from the price.
func (p *Price) way(r *x402.Requirements) Way {
	for _, w := range p.Ways {
		if w.Asset == r.Asset && w.Network == r.Network && w.Scheme == r.Scheme {
			return w
		}
	}
	return Way{Requirements: *r}
}

// smallest is the price in the currency's smallest unit.
func (p *Price) smallest() *big.Int {
	n, err := Units(p.Amount, p.Decimals)
	if err != nil {
		return new(big.Int) // services are checked when the router is made
	}
	return n.Big()
}
