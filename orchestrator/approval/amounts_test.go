package approval

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
)

// knownToken is a token that is known.
var knownToken = common.HexToAddress("0x0a")

// callOf is a call by its signature and arguments of one word each.
func callOf(signature string, words ...*big.Int) []byte {
	out := crypto.Keccak256([]byte(signature))[:4]
	for _, w := range words {
		out = append(out, common.LeftPadBytes(w.Bytes(), 32)...)
	}
	return out
}

// Each function that moves tokens is decoded, so that approvers and rules see its arguments.
func TestMoversAreDecoded(t *testing.T) {
	t.Parallel()
	decoder, err := contracts.NewCallDecoder()
	if err != nil {
		t.Fatal(err)
	}
	d := Describer{Tokens: []repute.Stablecoin{{ChainID: 7, Address: knownToken, Symbol: "TT", Decimals: 3}}}
	n := big.NewInt
	for name, data := range map[string][]byte{
		"approve": callOf("approve(address,address,uint160,uint48)", n(10), n(1), n(1500), n(9)),
		"permit": callOf("permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)", n(1), n(10),
			n(1500), n(9), n(9), n(2), n(9), n(256), n(0)),
		"transferFrom": callOf("transferFrom(address,address,uint160,address)", n(1), n(2), n(1500), n(10)),
		"operatorSend": callOf("operatorSend(address,address,uint256,bytes,bytes)", n(1), n(2), n(1500), n(160), n(192),
			n(0), n(0)),
	} {
		target := common.HexToAddress("0xb1")
		if name == "operatorSend" {
			target = knownToken
		}
		c := decoder.Decode(target, data, nil)[0]
		if c.Undecoded != "" || c.Decoded == nil {
			t.Errorf("%s: %s", name, c.Undecoded)
			continue
		}
		if got := d.amountsOf(7, &c); len(got) != 1 || got[0].Text != "1.5 TT" {
			t.Errorf("%s: shown as %+v", name, got)
		}
	}
}
