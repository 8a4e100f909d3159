package transaction

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/policy"
)

// Moves is what transactions take out of the owner's hands, as far as they say it themselves
// or simulations show it.
type Moves struct {
	coin   big.Int // wei
	tokens big.Int // wei, by the policy's prices
	beyond bool    // something without a price is among it: it counts for more than any value
}

// mover is where calldata has what a function moves, in words after the selector.
type mover struct{ token, amount int }

const (
	ofTarget = -1 // as a mover's token: the contract that is called
	unpriced = -1 // as a mover's amount: there is none, or it is no amount of one token
)

// Movers are the functions by which a holder moves tokens or lets others move them. The
// treasury's own list (OpenFiTreasury, _movesTokens) is part of it.
var Movers = selectors(map[string]int{
	"transfer(address,uint256)":                                                                        1,
	"transferFrom(address,address,uint256)":                                                            2,
	"approve(address,uint256)":                                                                         1,
	"increaseAllowance(address,uint256)":                                                               1,
	"increaseApproval(address,uint256)":                                                                1,
	"permit(address,address,uint256,uint256,uint8,bytes32,bytes32)":                                    2,
	"permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)":                               unpriced,
	"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)": 2,
	"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)":                 2,
	"receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)":  2,
	"burn(uint256)":                                                                               0,
	"burnFrom(address,uint256)":                                                                   1,
	"send(address,uint256,bytes)":                                                                 1,
	"transferAndCall(address,uint256)":                                                            1,
	"transferAndCall(address,uint256,bytes)":                                                      1,
	"approveAndCall(address,uint256)":                                                             1,
	"approveAndCall(address,uint256,bytes)":                                                       1,
	"authorizeOperator(address)":                                                                  unpriced,
	"setApprovalForAll(address,bool)":                                                             unpriced,
	"safeTransferFrom(address,address,uint256)":                                                   unpriced,
	"safeTransferFrom(address,address,uint256,bytes)":                                             unpriced,
	"safeTransferFrom(address,address,uint256,uint256,bytes)":                                     unpriced,
	"safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)":                            unpriced,
	"executeCall(bytes32,address,uint256,bytes,bytes32,bytes32,string)":                           unpriced,
	"operatorSend(address,address,uint256,bytes,bytes)":                                           2,
	"operatorBurn(address,uint256,bytes,bytes)":                                                   1,
	"burn(uint256,bytes)":                                                                         0,
	"transferFrom((address,address,uint160,address)[])":                                           unpriced,
	"permit(address,((address,uint160,uint48,uint48)[],address,uint256),bytes)":                   unpriced,
	"permitTransferFrom(((address,uint256)[],uint256,uint256),(address,uint256)[],address,bytes)": unpriced,
	"permitWitnessTransferFrom(((address,uint256)[],uint256,uint256),(address,uint256)[],address,bytes32,string,bytes)": unpriced,
}, map[string]mover{
	"transferERC20(bytes32,address,address,uint256,bytes32,bytes32,string)": {1,
		3},
	"approve(address,address,uint160,uint48)": {0,
		2},
	"transferFrom(address,address,uint160,address)": {3,
		2},
	"permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)": {1,
		2},
	"permitTransferFrom(((address,uint256),uint256,uint256),(address,uint256),address,bytes)": {0,
		1},
	"permitWitnessTransferFrom(((address,uint256),uint256,uint256),(address,uint256),address,bytes32,string,bytes)": {0,
		1},
})

// selectors gives functions by their selectors: those that move the token that is called, with
// the word of the amount, and those that name the token.
func selectors(own map[string]int, naming map[string]mover) map[[4]byte]mover {
	out := make(map[[4]byte]mover, len(own)+len(naming))
	for signature, amount := range own {
		out[selectorOf(signature)] = mover{ofTarget, amount}
	}
	for signature, m := range naming {
		out[selectorOf(signature)] = m
	}
	return out
}

// Read is the token and the amount that calldata behind a selector moves; ok is false where
// it names none, or is cut off.
func (m mover) Read(target common.Address, args []byte) (token common.Address, amount *big.Int, ok bool) {
	if amount, ok = word(args, m.amount); !ok || m.token == ofTarget {
		return target, amount, ok
	}
	at, ok := word(args, m.token)
	if !ok {
		return target, nil, false
	}
	return common.BigToAddress(at), amount, true
}

// selectorOf returns the first four bytes of the keccak256 of a function's signature.
func selectorOf(signature string) [4]byte { return [4]byte(crypto.Keccak256([]byte(signature))) }

// maxNested bounds how deep calls by treasuries lie in each other; what lies deeper counts as
// without price.
const maxNested = 5

// executeCall is the treasury's function that carries out a call for an agent.
var executeCall = selectorOf("executeCall(bytes32,address,uint256,bytes,bytes32,bytes32,string)")

// Add counts what a transaction moves: of tokens what it says, or what its simulation showed
// leaving the treasury where that is more.
func (m *Moves) Add(p *policy.Policy, tx *Tx, left []Outflow) error {
	value, err := ParseAmount(tx.Value)
	if err != nil {
		return fmt.Errorf("value: %w", err)
	}
	var said, shown Moves
	said.coin.Set(value)
	if tx.Token != nil {
		amount, err := ParseAmount(tx.Amount)
		if err != nil {
			return fmt.Errorf("amount: %w", err)
		}
		said.token(p, tx.ChainID, *tx.Token, amount)
	}
	said.call(p, tx.ChainID, tx.Target, tx.Data, maxNested)
	for _, o := range left {
		amount, ok := new(big.Int).SetString(o.Amount, 10)
		if shown.beyond = shown.beyond || !ok; ok {
			shown.token(p, tx.ChainID, o.Token, amount)
		}
	}
	more := &said.tokens
	if shown.tokens.Cmp(more) > 0 {
		more = &shown.tokens
	}
	m.coin.Add(&m.coin, &said.coin)
	m.tokens.Add(&m.tokens, more)
	m.beyond = m.beyond || said.beyond || shown.beyond
	return nil
}

// Join adds what other transactions move.
func (m *Moves) Join(other *Moves) {
	m.coin.Add(&m.coin, &other.coin)
	m.tokens.Add(&m.tokens, &other.tokens)
	m.beyond = m.beyond || other.beyond
}

// WorstOf is the most that one of several cases of a transaction moves. shown is the call of
// the dry run that it is, nil where there is none: what may hold any calldata may move
// anything. left is what the simulation showed leaving the treasury.
func WorstOf(p *policy.Policy, cases []Tx, shown *Declared, left []Outflow) (*Moves, error) {
	worst := &Moves{}
	for i := range cases {
		var m Moves
		if err := m.Add(p, &cases[i], left); err != nil {
			return nil, err
		}
		if !worst.beyond && (m.beyond || m.sum().Cmp(worst.sum()) > 0) {
			worst = &m
		}
	}
	worst.beyond = worst.beyond || shown != nil && shown.opaque()
	return worst, nil
}

// token adds the worth of an amount of a token to the value at risk. Without a price the value
// counts as above every limit.
func (m *Moves) token(p *policy.Policy, chainID uint64, token common.Address, amount *big.Int) {
	wei, priced := p.Worth(chainID, token, amount)
	if !priced {
		m.beyond = true
		return
	}
	m.tokens.Add(&m.tokens, wei)
}

// call counts what the function that is called moves, by its calldata alone. Arguments that
// cannot be read have no price, nor has what is called inside of other calls.
func (m *Moves) call(p *policy.Policy, chainID uint64, target common.Address, data []byte, depth int) {
	if len(data) < 4 {
		return
	}
	args := data[4:]
	switch selector := [4]byte(data); selector {
	case executeCall:
		m.execute(p, chainID, args, depth)
	default:
		by, moves := Movers[selector]
		if !moves {
			m.beyond = m.beyond || carriesMover(args)
			return
		}
		token, amount, ok := by.Read(target, args)
		if m.beyond = m.beyond || !ok; ok {
			m.token(p, chainID, token, amount)
		}
	}
}

// execute counts what a call by a treasury moves: its value, and what it calls.
func (m *Moves) execute(p *policy.Policy, chainID uint64, args []byte, depth int) {
	target, ok1 := word(args, 1)
	value, ok2 := word(args, 2)
	inner, ok3 := bytesAt(args, 3)
	if !ok1 || !ok2 || !ok3 || depth == 0 {
		m.beyond = true
		return
	}
	m.coin.Add(&m.coin, value)
	m.call(p, chainID, common.BigToAddress(target), inner, depth-1)
}

// word is an argument of a call as a number; ok is false where it is cut off, or there is
// none.
func word(args []byte, n int) (v *big.Int, ok bool) {
	if n < 0 || len(args) < 32*(n+1) {
		return nil, false
	}
	return new(big.Int).SetBytes(args[32*n : 32*(n+1)]), true
}

// bytesAt is an argument of type bytes.
func bytesAt(args []byte, n int) ([]byte, bool) {
	at, ok := word(args, n)
	if !ok || !at.IsUint64() || at.Uint64() > uint64(len(args)) {
		return nil, false
	}
	return counted(args[at.Uint64():])
}

// counted reads bytes behind their number.
func counted(from []byte) ([]byte, bool) {
	n, ok := word(from, 0)
	if !ok || !n.IsUint64() || n.Uint64() > uint64(len(from)-32) {
		return nil, false
	}
	return from[32 : 32+n.Uint64()], true
}

// carriesMover tells whether calldata holds the calldata of a function that moves something,
// behind its length, wherever it stands: as an argument, in a list of calls, or packed.
func carriesMover(args []byte) bool {
	for at := 32; at+4 <= len(args); at++ {
		if _, moves := Movers[[4]byte(args[at:])]; moves {
			if inner, ok := counted(args[at-32:]); ok && len(inner) >= 4 {
				return true
			}
		}
	}
	return false
}

// sum is what is moved in wei, without what has no price.
func (m *Moves) sum() *big.Int { return new(big.Int).Add(&m.coin, &m.tokens) }

// Over tells whether more is moved than a value.
func (m *Moves) Over(value *big.Int) bool { return m.beyond || m.sum().Cmp(value) > 0 }

// Value is what the gate compares: what has no price counts as the largest amount there is.
func (m *Moves) Value() string {
	if m.beyond {
		return math.MaxBig256.String()
	}
	return m.sum().String()
}
