package orchestrator

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// outflow is what a simulation showed leaving the treasury of one token.
type outflow struct {
	Token  common.Address `json:"token"`
	Amount string         `json:"amount,omitempty"` // decimal; empty: of something that has none, as an NFT
}

// The events by which tokens say that they moved, with the argument that is the holder; the
// receiver is the next.
var transfers = map[common.Hash]int{
	transferred: 0,
	crypto.Keccak256Hash([]byte("TransferSingle(address,address,address,uint256,uint256)")):    1,
	crypto.Keccak256Hash([]byte("TransferBatch(address,address,address,uint256[],uint256[])")): 1,
}

// transferred is the event of ERC-20 and ERC-721.
var transferred = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))

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
// moved is none of a token. Which of the arguments are topics differs among old tokens.
func leaving(holder common.Address, l *types.Log) (amount *big.Int, left bool) {
	if len(l.Topics) == 0 {
		return nil, false
	}
	at, known := transfers[l.Topics[0]]
	if !known {
		return nil, false
	}
	var args []byte
	for _, t := range l.Topics[1:] {
		args = append(args, t[:]...)
	}
	args = append(args, l.Data...)
	from, ok1 := word(args, at)
	to, ok2 := word(args, at+1)
	if !ok1 || !ok2 || common.BigToAddress(from) != holder || common.BigToAddress(to) == holder {
		return nil, false
	}
	if l.Topics[0] != transferred || len(l.Topics) > 3 {
		return nil, true
	}
	amount, ok := word(args, at+2)
	return amount, !ok || amount.Sign() > 0
}
