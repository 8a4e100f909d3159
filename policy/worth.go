package policy

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// TokenPrice says what a token counts for beside native coin: Units of its smallest unit
// are Wei. A ratio of two whole numbers is exact for any number of decimals, and the policy needs no source of prices.
// It is the policy's own estimate, which nobody updates.
type TokenPrice struct {
	ChainID uint64 `yaml:"chainId"`
	Token   string `yaml:"token"` // address
	Units   string `yaml:"units"` // decimal, more than 0
	Wei     string `yaml:"wei"`   // decimal
}

// price is a checked TokenPrice.
type price struct{ units, wei *big.Int }

// asset names a token.
type asset struct {
	chain uint64
	token common.Address
}

// prices checks what tokens count for. The error is repute.ErrInvalid and names the field.
func (t *Trust) prices() (map[asset]price, error) {
	out := make(map[asset]price, len(t.Tokens))
	for i, p := range t.Tokens {
		at := fmt.Sprintf("trust.tokens[%d]", i)
		token, err := repute.ParseAddress(at+".token", p.Token)
		if err != nil {
			return nil, err
		}
		units, err := amountOf(p.Units)
		if err != nil || units.Sign() == 0 {
			return nil, repute.Invalid(at+".units", fmt.Sprintf("%.40q is no number of units", p.Units),
				"decimal digits, more than 0, in the token's smallest unit")
		}
		wei, err := amountOf(p.Wei)
		if err != nil {
			return nil, repute.Invalid(at+".wei", err.Error(), "decimal digits")
		}
		of := asset{p.ChainID, token}
		if _, twice := out[of]; twice {
			return nil, repute.Invalid(at+".token", fmt.Sprintf("%s is listed already for chain %d", token, p.ChainID),
				"each token once")
		}
		if p.ChainID == 0 {
			return nil, repute.Invalid(at+".chainId", "is missing", "the id of the token's chain")
		}
		out[of] = price{units, wei}
	}
	return out, nil
}

// Worth is what an amount of a token counts for in wei, rounded up; priced is false where
// the policy has no price for the token. Rounding up keeps many small amounts from counting as nothing. amount MUST NOT
// be negative.
func (p *Policy) Worth(chainID uint64, token common.Address, amount *big.Int) (wei *big.Int, priced bool) {
	of, priced := p.worth[asset{chainID, token}]
	if !priced {
		return nil, false
	}
	wei = new(big.Int).Mul(amount, of.wei)
	wei.Add(wei, of.units).Sub(wei, big.NewInt(1))
	return wei.Div(wei, of.units), true
}
