package orchestrator

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// outflow is what a simulation showed leaving the treasury of one token, or free to be taken from
// it afterwards.
type outflow struct {
	Token  common.Address `json:"token"`
	Amount string         `json:"amount,omitempty"` // decimal; empty: of something that has none, as an NFT
}

// allowance is what one address may take of a token, or of all of its NFTs.
type allowance struct {
	token, spender common.Address
	all            bool
}

// outflows are what events show leaving a holder, and the allowances that it has given in the end,
// one for each token and kind.
func outflows(holder common.Address, logs []types.Log) (out []outflow) {
	sums, given := map[common.Address]*big.Int{}, map[allowance]tokenEvent{}
	add := func(token common.Address, amount *big.Int) {
		switch o := (outflow{Token: token}); {
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
		e, known := tokenEventOf(&logs[i])
		switch token := logs[i].Address; {
		case !known || e.from != holder || e.to == holder:
		case e.kind == eventTransfer:
			add(token, e.amount)
		case e.amount == nil && e.to == (common.Address{}): // an NFT's approval is taken back
		default:
			given[allowance{token, e.to, e.kind == eventApprovalForAll}] = e // the last one counts
		}
	}
	for a, e := range given {
		switch taken := e.amount != nil && e.amount.Sign() == 0; {
		case taken:
		case a.all:
			add(a.token, nil)
		default:
			add(a.token, e.amount)
		}
	}
	for token, sum := range sums {
		out = append(out, outflow{token, sum.String()})
	}
	slices.SortFunc(out, func(a, b outflow) int { return cmp.Or(a.Token.Cmp(b.Token), cmp.Compare(a.Amount, b.Amount)) })
	return out
}
