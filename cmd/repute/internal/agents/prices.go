package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/agent/config"
	"repute/x402"
)

// usdc are the tokens that are known without configuration. Each is Circle's own contract, with the name and version of
// its EIP-712 domain. Tokens of the configuration come first and win.
func usdc() []config.Token {
	token := func(network, asset, name string) config.Token {
		return config.Token{Network: network, Asset: asset, Symbol: "USDC", Decimals: 6, Name: name, Version: "2"}
	}
	return []config.Token{
		token("eip155:8453", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin"),
		token("eip155:84532", "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC"),
		token("eip155:137", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USD Coin"),
		token("eip155:42161", "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USD Coin"),
	}
}

// pricing turns prices of definitions into those of services.
type pricing struct {
	chain    uint64
	payTo    common.Address
	tokens   []config.Token
	promises bool
	// local reports whether payments can be settled on a chain.
	local func(chainID uint64) bool
	// settler is the account that payments of the scheme upto name, by network.
	settler map[string]common.Address
}

// price returns what a capability costs, nil for a free one. repute.ErrInvalid names the price that cannot be paid. The
// first price is the one that policies and the promise of payment see; each price in a token is a way to pay.
func (p *pricing) price(d *capability.Definition, chargeFrom string) (*agent.Price, error) {
	if len(d.Pricing) == 0 {
		return nil, nil
	}
	first := d.Pricing[0]
	out := &agent.Price{Amount: first.Amount, Currency: first.Currency, Decimals: 18, ChargeFrom: chargeFrom}
	for i, one := range d.Pricing {
		field := fmt.Sprintf("capabilities.%s.pricing[%d]", d.Name, i)
		if one.Native() {
			if !p.promises {
				return nil, repute.Invalid(field, "no scheme of x402 moves ETH", "a token, or payments.promises: true")
			}
			continue
		}
		way, err := p.way(field, d, one)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			out.Decimals = way.Decimals
		}
		out.Ways = append(out.Ways, way)
	}
	return out, nil
}

// way is a price in a token. A token without a name is taken for one without EIP-3009 (transferWithAuthorization), and
// is paid by Permit2.
func (p *pricing) way(field string, d *capability.Definition, one capability.Price) (way agent.Way, err error) {
	network := one.Network
	if network == "" {
		network = x402.Network(p.chain)
	}
	at := slices.IndexFunc(p.tokens, func(t config.Token) bool {
		return (t.Network == network || t.Network == "" && network == x402.Network(p.chain)) &&
			t.Symbol == one.Currency &&
			(one.Asset == "" || strings.EqualFold(t.Asset, one.Asset))
	})
	if at < 0 {
		return way, repute.Invalid(field, fmt.Sprintf("%s is no known token on %s", one.Currency, network),
			"describe it in payments.tokens")
	}
	id, err := x402.ChainOf(network)
	if err != nil || !p.local(id) {
		return way, repute.Invalid(field, "payments on "+network+" cannot be settled or confirmed here",
			"a network that the settler has a key on, or the agent's own")
	}
	t := p.tokens[at]
	asset, err := repute.ParseAddress("payments.tokens.asset", t.Asset)
	if err != nil {
		return way, err
	}
	amount, err := agent.Units(one.Amount, t.Decimals)
	if err != nil {
		return way, repute.Invalid(field, err.Error(), "an amount of the token")
	}
	extra := x402.Extra{Name: t.Name, Version: t.Version}
	if t.Name == "" {
		extra = x402.Extra{Method: x402.MethodPermit2}
	}
	scheme := x402.SchemeExact
	if d.Scheme == capability.UpTo {
		settler, ok := p.settler[network]
		if !ok {
			return way, repute.Invalid(field, "no facilitator settles the scheme upto on "+network, "scheme exact")
		}
		scheme, extra = x402.SchemeUpto, x402.Extra{Facilitator: &settler}
	}
	raw, err := extra.JSON()
	if err != nil {
		return way, fmt.Errorf("price: %w", err)
	}
	return agent.Way{Symbol: t.Symbol, Decimals: t.Decimals, Requirements: x402.Requirements{Scheme: scheme,
		Network: network,
		Amount:  amount, Asset: asset, PayTo: p.payTo, MaxTimeoutSeconds: int64(d.Timeout().Seconds()) + settleTime,
		Extra: raw}}, nil
}

// settleTime is how long an authorization holds beyond the handler's time, in seconds. It is for the facilitator's
// transaction to be mined.
const settleTime = 120

// settlers reads which account settles payments of the scheme upto, by network.
func settlers(ctx context.Context, f x402.Facilitator) (map[string]common.Address, error) {
	out := map[string]common.Address{}
	if f == nil {
		return out, nil
	}
	s, err := f.Supported(ctx)
	if err != nil {
		return nil, fmt.Errorf("the facilitator does not tell what it supports: %w: %w", repute.ErrUnavailable, err)
	}
	for _, k := range s.Kinds {
		r := x402.Requirements{Extra: k.Extra}
		if terms, err := r.Terms(); err == nil && k.Scheme == x402.SchemeUpto && terms.Facilitator != nil {
			out[k.Network] = *terms.Facilitator
		}
	}
	return out, nil
}
