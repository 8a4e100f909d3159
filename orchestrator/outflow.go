package orchestrator

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// outflow is what a simulation showed leaving the treasury of one token.
type outflow struct {
	Token  common.Address `json:"token"`
	Amount string         `json:"amount,omitempty"` // decimal; empty: of something that has none, as an NFT
}

// outflows are what events show leaving a holder, one for each token and kind.
func outflows(holder common.Address, logs []types.Log) (out []outflow) {
	sums := map[common.Address]*big.Int{}
	for i := range logs {
		amount, left := leaving(holder, &logs[i])
		token := logs[i].Address
		switch {
		case !left:
		case amount == nil:
			if o := (outflow{Token: token}); !slices.Contains(out, o) {
				out = append(out, o)
			}
		case sums[token] == nil:
			sums[token] = amount
		default:
			sums[token].Add(sums[token], amount)
		}
	}
	for token, sum := range sums {
		out = append(out, outflow{token, sum.String()})
	}
	slices.SortFunc(out, func(a, b outflow) int { return a.Token.Cmp(b.Token) })
	return out
}

// leaving reads the event of a transfer from a holder to another; amount is nil where what
// moved is none of a token.
func leaving(holder common.Address, l *types.Log) (amount *big.Int, left bool) {
	e, known := tokenEventOf(l)
	if !known || e.kind != eventTransfer || e.from != holder || e.to == holder {
		return nil, false
	}
	return e.amount, e.amount == nil || e.amount.Sign() > 0
}
