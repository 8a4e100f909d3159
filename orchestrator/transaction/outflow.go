package transaction

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Outflow is what a simulation showed leaving the treasury of one token, or free to be taken from
// it afterwards.
type Outflow struct {
	Token  common.Address `json:"token"`
	Amount string         `json:"amount,omitempty"` // decimal; empty: of something that has none, as an NFT
}

// allowance is what one address may take of a token, or of all of its NFTs.
type allowance struct {
	token, spender common.Address
	all            bool
}

// Outflows are what events show leaving a holder, and the allowances that it has given in the end,
// one for each token and kind.
func Outflows(holder common.Address, logs []types.Log) (out []Outflow) {
	sums, given := map[common.Address]*big.Int{}, map[allowance]tokenEvent{}
	add := func(token common.Address, amount *big.Int) {
		switch o := (Outflow{Token: token}); {
		case amount == nil && !slices.Contains(out, o):
			out = append(out, o)
		case amount != nil && amount.Sign() > 0:
			if sums[token] == nil {
				sums[token] = new(big.Int)
			}
			sums[token].Add(sums[token], amount)
		}
	}
	for i := range logs {
		e, known := ReadTokenEvent(&logs[i])
		switch token := logs[i].Address; {
		case !known || e.From != holder || e.To == holder:
		case e.Kind == EventTransfer:
			add(token, e.Amount)
		case e.Amount == nil && e.To == (common.Address{}): // an NFT's approval is taken back
		default:
			given[allowance{token, e.To, e.Kind == EventApprovalForAll}] = e // the last one counts
		}
	}
	for a, e := range given {
		switch taken := e.Amount != nil && e.Amount.Sign() == 0; {
		case taken:
		case a.all:
			add(a.token, nil)
		default:
			add(a.token, e.Amount)
		}
	}
	for token, sum := range sums {
		out = append(out, Outflow{token, sum.String()})
	}
	slices.SortFunc(out,
		func(a, b Outflow) int { return cmp.Or(a.Token.Cmp(b.Token), cmp.Compare(a.Amount, b.Amount)) })
	return out
}
