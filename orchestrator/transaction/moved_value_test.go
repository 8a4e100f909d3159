package transaction

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/policy"
)

// The treasury, and an account that is not its owner.
var treasuryAt, spenderAt = common.HexToAddress("0xa1"), common.HexToAddress("0xb1")

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
	n, to := big.NewInt, spenderAt
	token, treasury := fixtures.NewTestToken(), bindings.NewOpenFiTreasury()
	through := func(target common.Address, value int64, data []byte) []byte {
		return treasury.PackExecuteCall([32]byte{1}, target, n(value), data, [32]byte{2}, [32]byte{3}, "")
	}
	pay := token.PackTransfer(to, n(1500))
	deep := pay
	for range maxNested + 2 {
		deep = through(spenderAt, 0, deep)
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
		"transferFrom":               {Tx{Target: tokenAt, Data: token.PackTransferFrom(treasuryAt, to, n(1000))}, 7},
		"approve":                    {Tx{Target: tokenAt, Data: token.PackApprove(to, n(1000))}, 7},
		"increaseAllowance": {Tx{Target: tokenAt, Data: calldata("increaseAllowance(address,uint256)",
			n(1), n(1000))}, 7},
		"permit": {Tx{Target: tokenAt,
			Data: calldata("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", n(1), n(2), n(1000),
				n(9), n(9),
				n(9), n(9))}, 7},
		"permit without an amount": {Tx{Target: tokenAt,
			Data: calldata("permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)", n(1), n(2), n(3), n(9),
				n(1))}, beyond},
		"cut off": {Tx{Target: tokenAt, Data: pay[:40]}, beyond},
		"an NFT": {Tx{Target: tokenAt,
			Data: calldata("safeTransferFrom(address,address,uint256)", n(1), n(2), n(3))}, beyond},
		"many things": {Tx{Target: tokenAt,
			Data: calldata("safeTransferFrom(address,address,uint256,uint256,bytes)", n(1), n(2), n(3), n(4), n(0))},
			beyond},
		"everything": {Tx{Target: tokenAt, Data: calldata("setApprovalForAll(address,bool)", n(1),
			n(1))}, beyond},
		"Permit2's approve": {Tx{Target: spenderAt,
			Data: calldata("approve(address,address,uint160,uint48)", n(10), n(1), n(1000), n(9))}, 7},
		"Permit2's approve of unknown tokens": {Tx{Target: spenderAt,
			Data: calldata("approve(address,address,uint160,uint48)", n(11), n(1), n(1000), n(9))}, beyond},
		"Permit2's transferFrom": {Tx{Target: spenderAt,
			Data: calldata("transferFrom(address,address,uint160,address)", n(1), n(2), n(1000), n(10))}, 7},
		"Permit2's permit": {Tx{Target: spenderAt,
			Data: calldata("permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)", n(1), n(10),
				n(1000),
				n(9), n(9), n(2), n(9), n(256), n(0))}, 7},
		"Permit2's permit of many": {Tx{Target: spenderAt,
			Data: calldata("permit(address,((address,uint160,uint48,uint48)[],address,uint256),bytes)", n(1), n(96),
				n(256))},
			beyond},
		"Permit2's signed transfer": {Tx{Target: spenderAt,
			Data: calldata("permitTransferFrom(((address,uint256),uint256,uint256),(address,uint256),address,bytes)",
				n(10),
				n(1000), n(9), n(9), n(1), n(500), n(2), n(256), n(0))}, 7},
		"Permit2's signed transfers": {Tx{Target: spenderAt,
			Data: calldata("permitTransferFrom(((address,uint256)[],uint256,uint256),(address,uint256)[],address,bytes)",
				n(128), n(256))}, beyond},
		"Permit2's transfers of many": {Tx{Target: spenderAt,
			Data: calldata("transferFrom((address,address,uint160,address)[])", n(32), n(0))}, beyond},
		"ERC-777 send": {Tx{Target: tokenAt, Data: calldata("send(address,uint256,bytes)", n(1),
			n(1000), n(96), n(0))}, 7},
		"ERC-777 operatorSend": {Tx{Target: tokenAt,
			Data: calldata("operatorSend(address,address,uint256,bytes,bytes)", n(1), n(2), n(1000), n(160),
				n(192), n(0),
				n(0))}, 7},
		"ERC-777 operatorBurn": {Tx{Target: tokenAt,
			Data: calldata("operatorBurn(address,uint256,bytes,bytes)", n(1), n(1000), n(128), n(160), n(0), n(0))}, 7},
		"ERC-777 authorizeOperator": {Tx{Target: tokenAt, Data: calldata("authorizeOperator(address)", n(1))},
			beyond},
		"coin by a treasury": {Tx{Target: spenderAt, Data: through(to, 3, nil)}, 3},
		"tokens by a treasury": {Tx{Target: spenderAt, Data: treasury.PackTransferERC20([32]byte{1}, tokenAt,
			to, n(1000), [32]byte{}, [32]byte{}, "")}, 7},
		"a call by a treasury": {Tx{Target: spenderAt, Data: through(tokenAt, 3, pay)}, 14},
		"by a treasury of another": {Tx{Target: spenderAt, Value: "1",
			Data: through(spenderAt, 2, through(tokenAt, 3, pay))}, 17},
		"too deep": {Tx{Target: spenderAt, Data: deep}, beyond},
		"through a middleman": {Tx{Target: spenderAt, Data: fixtures.NewPayee().PackCallback(tokenAt, pay)},
			beyond},
		"a middleman's number": {Tx{Target: spenderAt,
			Data: calldata("ping(uint256)", new(big.Int).SetBytes(pay[:32]))}, 0},
	} {
		c.tx.ChainID = 7
		var got Moves
		if err := got.Add(p, &c.tx, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := n(c.wei).String()
		if c.wei == beyond {
			want = math.MaxBig256.String()
		}
		if got.Value() != want {
			t.Errorf("%s: moves %s, want %s", name, got.Value(), want)
		}
	}
}

// TestMovesAsShown counts what a simulation shows leaving the treasury where calldata does
// not say it, and nothing twice.
func TestMovesAsShown(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte(priced))
	if err != nil {
		t.Fatal(err)
	}
	treasury := treasuryAt
	topic := func(a common.Address) common.Hash { return common.BytesToHash(a[:]) }
	number := func(n int64) []byte { return common.LeftPadBytes(big.NewInt(n).Bytes(), 32) }
	moved := func(token, from, to common.Address, amount int64) types.Log {
		return types.Log{Address: token, Topics: []common.Hash{transferred, topic(from), topic(to)},
			Data: number(amount)}
	}
	old := types.Log{Address: tokenAt, Topics: []common.Hash{transferred},
		Data: slices.Concat(topic(treasury).Bytes(), topic(spenderAt).Bytes(), number(1000))}
	nft := moved(tokenAt, treasury, spenderAt, 1)
	nft.Topics, nft.Data = append(nft.Topics, common.Hash{31: 1}), nil
	allowed := func(token common.Address, amount int64) types.Log {
		return types.Log{Address: token, Topics: []common.Hash{approved, topic(treasury), topic(spenderAt)},
			Data: number(amount)}
	}
	nftAllowed := types.Log{Address: unknownToken, Topics: []common.Hash{approved, topic(treasury), topic(spenderAt),
		{31: 1}}}
	all := func(given int64) types.Log {
		return types.Log{Address: unknownToken,
			Topics: []common.Hash{crypto.Keccak256Hash([]byte("ApprovalForAll(address,address,bool)")), topic(treasury),
				topic(spenderAt)}, Data: number(given)}
	}
	many := func(signature string) types.Log {
		return types.Log{Address: tokenAt, Topics: []common.Hash{crypto.Keccak256Hash([]byte(signature)),
			topic(spenderAt),
			topic(treasury), topic(spenderAt)}, Data: number(1)}
	}
	pay := Tx{ChainID: 7, Target: tokenAt, Value: "3", Data: calldata("transfer(address,uint256)", big.NewInt(1),
		big.NewInt(2000))}
	opaque := Tx{ChainID: 7, Target: spenderAt, Value: "3", Data: calldata("redeem(uint256)", big.NewInt(1))}
	const beyond = -1
	for name, c := range map[string]struct {
		tx   Tx
		logs []types.Log
		wei  int64
	}{
		"nothing is shown":  {pay, nil, 17},
		"what is said":      {pay, []types.Log{moved(tokenAt, treasury, spenderAt, 2000)}, 17},
		"less than is said": {pay, []types.Log{moved(tokenAt, treasury, spenderAt, 1000)}, 17},
		"more than is said": {pay, []types.Log{moved(tokenAt, treasury, spenderAt, 2000),
			moved(tokenAt, treasury, spenderAt, 1000)}, 24},
		"what nothing says": {opaque, []types.Log{moved(tokenAt, treasury, spenderAt, 1000)}, 10},
		"without topics":    {opaque, []types.Log{old}, 10},
		"burned":            {opaque, []types.Log{moved(tokenAt, treasury, common.Address{}, 1000)}, 10},
		"of others": {opaque, []types.Log{moved(tokenAt, spenderAt, treasury, 1000),
			moved(unknownToken, spenderAt, tokenAt, 1)}, 3},
		"to itself":      {opaque, []types.Log{moved(tokenAt, treasury, treasury, 1000)}, 3},
		"none of it":     {opaque, []types.Log{moved(unknownToken, treasury, spenderAt, 0)}, 3},
		"unknown tokens": {opaque, []types.Log{moved(unknownToken, treasury, spenderAt, 1)}, beyond},
		"an NFT":         {opaque, []types.Log{nft}, beyond},
		"of many things one": {opaque, []types.Log{many("TransferSingle(address,address,address,uint256,uint256)")},
			beyond},
		"of many things several": {opaque,
			[]types.Log{many("TransferBatch(address,address,address,uint256[],uint256[])")},
			beyond},
		"an allowance":        {opaque, []types.Log{allowed(tokenAt, 1000)}, 10},
		"the last allowance":  {opaque, []types.Log{allowed(tokenAt, 5000), allowed(tokenAt, 1000)}, 10},
		"an allowance taken":  {opaque, []types.Log{allowed(unknownToken, 5000), allowed(unknownToken, 0)}, 3},
		"of an unknown token": {opaque, []types.Log{allowed(unknownToken, 1)}, beyond},
		"moved and allowed": {opaque, []types.Log{moved(tokenAt, treasury, spenderAt, 1000),
			allowed(tokenAt, 1000)}, 17},
		"an NFT allowed":       {opaque, []types.Log{nftAllowed}, beyond},
		"all NFTs allowed":     {opaque, []types.Log{all(1)}, beyond},
		"all NFTs, taken back": {opaque, []types.Log{all(1), all(0)}, 3},
		"another event":        {opaque, []types.Log{many("Approval(address,address,uint256)"), {Address: tokenAt}}, 3},
	} {
		var got Moves
		if err := got.Add(p, &c.tx, Outflows(treasury, c.logs)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := big.NewInt(c.wei).String()
		if c.wei == beyond {
			want = math.MaxBig256.String()
		}
		if got.Value() != want {
			t.Errorf("%s: moves %s, want %s", name, got.Value(), want)
		}
	}
}
