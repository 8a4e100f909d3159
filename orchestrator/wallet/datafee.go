package wallet

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// oracle tells on chains of the OP stack what a transaction's data costs on the chain below:
// getL1Fee(bytes) of the transaction without its signature.
var oracle = common.HexToAddress("0x420000000000000000000000000000000000000F")

// States of what is known of a chain's oracle.
const (
	oracleUnknown = iota
	oracleAbsent
	oracleThere
)

// maxDataFee bounds the fee for data that is believed, in bits of its wei.
const maxDataFee = 96

// hasOracle tells whether a chain takes a fee for data. It is asked once.
func (c *chain) hasOracle(ctx context.Context, e *endpoint) (bool, error) {
	if known := c.oracle.Load(); known != oracleUnknown {
		return known == oracleThere, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	code, err := e.eth.CodeAt(ctx, oracle, nil)
	if err != nil {
		return false, e.failed("code of the oracle of fees", err)
	}
	known := int32(oracleAbsent)
	if len(code) > 0 {
		known = oracleThere
	}
	c.oracle.Store(known)
	return len(code) > 0, nil
}

// dataFee is what a call's data costs now beside its gas, in wei: nothing on most chains.
func (c *chain) dataFee(ctx context.Context, e *endpoint, k *call) (*big.Int, error) {
	there, err := c.hasOracle(ctx, e)
	if err != nil || !there {
		return new(big.Int), err
	}
	// Its gas and fees are not known yet: these take as much room as any.
	room := new(big.Int).SetUint64(1<<48 - 1)
	raw, err := types.NewTx(&types.DynamicFeeTx{ChainID: c.id, Nonce: 1<<32 - 1, To: &k.to, Data: k.data, Gas: maxTxGas, GasFeeCap: room, GasTipCap: room}).MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("transaction: %w", err)
	}
	ask := make([]byte, 4+64+(len(raw)+31)/32*32)
	copy(ask, crypto.Keccak256([]byte("getL1Fee(bytes)"))[:4])
	ask[4+31] = 32
	binary.BigEndian.PutUint64(ask[4+56:], uint64(len(raw)))
	copy(ask[4+64:], raw)
	out, err := e.read(ctx, oracle, ask)
	if errors.Is(err, repute.ErrInvalid) || err == nil && len(out) != 32 {
		return new(big.Int), nil // something else is there
	}
	if err != nil {
		return nil, err
	}
	fee := new(big.Int).SetBytes(out)
	if fee.BitLen() > maxDataFee {
		return nil, e.failed("fee for data", errors.New("is no amount"))
	}
	return fee, nil
}

// gasLimit is what of most is left for gas; nil is no limit. repute.ErrLimited where the fee
// for data leaves nothing.
func (c *chain) gasLimit(most, dataFee *big.Int) (*big.Int, error) {
	if most == nil {
		return nil, nil
	}
	left := new(big.Int).Sub(most, withHeadroom(dataFee, c.Headroom))
	if left.Sign() < 0 {
		return nil, fmt.Errorf("the fee for data is %s wei, and all may cost %s: %w", dataFee, most, repute.ErrLimited)
	}
	return left, nil
}

// receipt is one with the fee for the transaction's data.
type receipt struct {
	*types.Receipt
	dataFee *big.Int
}

// UnmarshalJSON reads what nodes of the OP stack add, too.
func (r *receipt) UnmarshalJSON(b []byte) error {
	var more struct {
		L1Fee *hexutil.Big `json:"l1Fee"`
	}
	r.Receipt = new(types.Receipt)
	if err := errors.Join(json.Unmarshal(b, r.Receipt), json.Unmarshal(b, &more)); err != nil {
		return err
	}
	if r.dataFee = new(big.Int); more.L1Fee != nil {
		r.dataFee = more.L1Fee.ToInt()
	}
	if r.dataFee.BitLen() > maxDataFee {
		return errors.New("l1Fee is no amount")
	}
	return nil
}

// fee is what the transaction cost in all.
func (r *receipt) fee() *big.Int {
	fee := cost(r.GasUsed, r.EffectiveGasPrice)
	return fee.Add(fee, r.dataFee)
}
