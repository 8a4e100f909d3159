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
	"repute/orchestrator/wallet/rules"
)

// oracle is the contract of OP Stack chains that returns the fee for a transaction's data on the
// chain below: getL1Fee(bytes) of the unsigned transaction.
var oracle = common.HexToAddress("0x420000000000000000000000000000000000000F")

// States of the knowledge whether a chain has the oracle.
const (
	oracleUnknown = iota
	oracleAbsent
	oracleThere
)

// maxDataFee bounds the accepted fee for data, in bits of its wei.
const maxDataFee = 96

// hasOracle reports whether a chain takes a fee for data. It reads the code of the oracle until endpoints have
// agreed about it; afterwards it is known for the life of the process.
func (c *chain) hasOracle(ctx context.Context, e *endpoint, at *head) (bool, error) {
	if known := c.oracle.Load(); known != oracleUnknown {
		return known == oracleThere, nil
	}
	var code hexutil.Bytes
	if err := e.call(ctx, &code, "eth_getCode", oracle, pinned(at.Hash)); err != nil {
		return false, e.failed("code of the oracle of fees", err)
	}
	return len(code) > 0, nil
}

// knowOracle stores the answer on which endpoints agree.
func (c *chain) knowOracle(there bool) {
	known := int32(oracleAbsent)
	if there {
		known = oracleThere
	}
	c.oracle.Store(known)
}

// dataFee returns the fee for a call's data at a block in wei, in addition to its gas: zero on most
// chains. there reports whether the chain takes such a fee.
func (c *chain) dataFee(ctx context.Context, e *endpoint, k *call, at *head) (fee *big.Int, there bool, err error) {
	if there, err = c.hasOracle(ctx, e, at); err != nil || !there {
		return new(big.Int), there, err
	}
	// Gas and fees are not known yet; these values need as much space as any.
	room := new(big.Int).SetUint64(1<<48 - 1)
	raw, err := types.NewTx(&types.DynamicFeeTx{ChainID: c.id, Nonce: 1<<32 - 1, To: &k.to, Data: k.data, Gas: maxTxGas,
		GasFeeCap: room, GasTipCap: room}).MarshalBinary()
	if err != nil {
		return nil, there, fmt.Errorf("transaction: %w", err)
	}
	input := make([]byte, 4+64+(len(raw)+31)/32*32)
	copy(input, crypto.Keccak256([]byte("getL1Fee(bytes)"))[:4])
	input[4+31] = 32
	binary.BigEndian.PutUint64(input[4+56:], uint64(len(raw)))
	copy(input[4+64:], raw)
	out, err := e.readAt(ctx, oracle, input, at.Hash)
	if errors.Is(err, repute.ErrInvalid) || err == nil && len(out) != 32 {
		return new(big.Int), there, nil // the contract is not the oracle
	}
	if err != nil {
		return nil, there, err
	}
	if fee = new(big.Int).SetBytes(out); fee.BitLen() > maxDataFee {
		return nil, there, e.failed("fee for data", errors.New("is no amount"))
	}
	return fee, there, nil
}

// receipt is a receipt with the fee for the transaction's data.
type receipt struct {
	*types.Receipt
	dataFee *big.Int
}

// UnmarshalJSON also reads the members that OP Stack nodes add.
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

// fee returns the total cost of the transaction.
func (r *receipt) fee() *big.Int {
	fee := rules.Cost(r.GasUsed, r.EffectiveGasPrice)
	return fee.Add(fee, r.dataFee)
}
