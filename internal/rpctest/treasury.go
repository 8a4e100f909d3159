package rpctest

import (
	"math/big"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute/contracts/bindings"
)

// TreasuryLog encodes an event of an OpenFiTreasury from its arguments in order of declaration. It panics on
// arguments that do not fit: only tests call it.
func TreasuryLog(at common.Address, name string, args ...any) types.Log {
	e := bindings.NewOpenFiTreasury().GetABI().Events[name]
	l := types.Log{Address: at, Topics: []common.Hash{e.ID}}
	var data []any
	for i, in := range e.Inputs {
		if !in.Indexed {
			data = append(data, args[i])
			continue
		}
		topics, err := abi.MakeTopics([]any{args[i]})
		must(err)
		l.Topics = append(l.Topics, topics[0][0])
	}
	packed, err := e.Inputs.NonIndexed().Pack(data...)
	must(err)
	l.Data = packed
	return l
}

// Payment is the transaction of a run in which a treasury sends native coin.
func Payment(treasury common.Address, run common.Hash, wei int64) []types.Log {
	return []types.Log{TreasuryLog(treasury, "NativeExecuted", common.Hash{1}, Account(1), Account(2), Account(1),
		big.NewInt(wei), [4]byte{}, run, common.Hash{2}, "fee \x00 <b>")}
}
