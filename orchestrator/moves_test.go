package orchestrator

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"

	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/policy"
)

// Of the token a thousand units are 7 wei; of the other nothing is known.
var tokenAt, unknownToken = common.HexToAddress("0x0a"), common.HexToAddress("0x0b")

const priced = `version: "1"
trust:
  tokens: [{chainId: 7, token: "0x000000000000000000000000000000000000000a", units: "1000", wei: "7"}]
`

// calldata is a call by its signature and arguments of one word each.
func calldata(signature string, words ...*big.Int) (out []byte) {
	sel := selectorOf(signature)
	out = append(out, sel[:]...)
	for _, w := range words {
		out = append(out, common.LeftPadBytes(w.Bytes(), 32)...)
	}
	return out
}

// TestMoves has one case for each way by which a transaction takes something away.
func TestMoves(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte(priced))
	if err != nil {
		t.Fatal(err)
	}
	n, to := big.NewInt, stranger
	token, treasury := fixtures.NewTestToken(), bindings.NewOpenFiTreasury()
	through := func(target common.Address, value int64, data []byte) []byte {
		return treasury.PackExecuteCall([32]byte{1}, target, n(value), data, [32]byte{2}, [32]byte{3}, "")
	}
	pay := token.PackTransfer(to, n(1500))
	deep := pay
	for range maxDepth + 2 {
		deep = through(stranger, 0, deep)
	}
	const beyond = -1
	for name, c := range map[string]struct {
		tx  Tx
		wei int64
	}{
		"coin":                       {Tx{Value: "5"}, 5},
		"nothing":                    {Tx{Data: calldata("ping(uint256)", n(4))}, 0},
		"tokens":                     {Tx{Token: &tokenAt, Amount: "2000"}, 14},
		"tokens, rounded up":         {Tx{Token: &tokenAt, Amount: "1"}, 1},
		"unknown tokens":             {Tx{Token: &unknownToken, Amount: "1"}, beyond},
		"transfer":                   {Tx{Target: tokenAt, Data: pay}, 11},
		"transfer of unknown tokens": {Tx{Target: unknownToken, Data: pay}, beyond},
		"transferFrom":               {Tx{Target: tokenAt, Data: token.PackTransferFrom(owner, to, n(1000))}, 7},
		"approve":                    {Tx{Target: tokenAt, Data: token.PackApprove(to, n(1000))}, 7},
		"increaseAllowance":          {Tx{Target: tokenAt, Data: calldata("increaseAllowance(address,uint256)", n(1), n(1000))}, 7},
		"permit":                     {Tx{Target: tokenAt, Data: calldata("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", n(1), n(2), n(1000), n(9), n(9), n(9), n(9))}, 7},
		"permit without an amount":   {Tx{Target: tokenAt, Data: calldata("permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)", n(1), n(2), n(3), n(9), n(1))}, beyond},
		"cut off":                    {Tx{Target: tokenAt, Data: pay[:40]}, beyond},
		"an NFT":                     {Tx{Target: tokenAt, Data: calldata("safeTransferFrom(address,address,uint256)", n(1), n(2), n(3))}, beyond},
		"many things":                {Tx{Target: tokenAt, Data: calldata("safeTransferFrom(address,address,uint256,uint256,bytes)", n(1), n(2), n(3), n(4), n(0))}, beyond},
		"everything":                 {Tx{Target: tokenAt, Data: calldata("setApprovalForAll(address,bool)", n(1), n(1))}, beyond},
		"coin by a treasury":         {Tx{Target: stranger, Data: through(to, 3, nil)}, 3},
		"tokens by a treasury":       {Tx{Target: stranger, Data: treasury.PackTransferERC20([32]byte{1}, tokenAt, to, n(1000), [32]byte{}, [32]byte{}, "")}, 7},
		"a call by a treasury":       {Tx{Target: stranger, Data: through(tokenAt, 3, pay)}, 14},
		"by a treasury of another":   {Tx{Target: stranger, Value: "1", Data: through(stranger, 2, through(tokenAt, 3, pay))}, 17},
		"too deep":                   {Tx{Target: stranger, Data: deep}, beyond},
		"through a middleman":        {Tx{Target: stranger, Data: fixtures.NewPayee().PackCallback(tokenAt, pay)}, beyond},
		"a middleman's number":       {Tx{Target: stranger, Data: calldata("ping(uint256)", new(big.Int).SetBytes(pay[:32]))}, 0},
	} {
		c.tx.ChainID = 7
		got := moves{wei: new(big.Int)}
		if err := got.add(p, &c.tx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := n(c.wei).String()
		if c.wei == beyond {
			want = math.MaxBig256.String()
		}
		if got.value() != want {
			t.Errorf("%s: moves %s, want %s", name, got.value(), want)
		}
	}
}
