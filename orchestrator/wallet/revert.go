package wallet

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"repute/contracts/bindings"
	"repute/indexer/node"
)

// refusals are parts of messages by which nodes report that a transaction cannot be executed, as
// opposed to a failure of the node.
var refusals = []string{"revert", "insufficient funds", "gas required exceeds", "out of gas", "invalid opcode",
	"invalid jump", "stack underflow", "stack overflow", "exceeds block gas limit", "intrinsic gas"}

// refusal returns why the chain would refuse a call; refused is false if the endpoint failed instead. Data of the
// error is a revert. Nodes that send none are told by their texts, for which there is no standard.
func (e *endpoint) refusal(err error) (reason string, refused bool) {
	var answer rpc.Error
	if !errors.As(err, &answer) {
		return "", false
	}
	var detail rpc.DataError
	if errors.As(err, &detail) {
		if text, isText := detail.ErrorData().(string); isText {
			if data, err := hexutil.Decode(text); err == nil && len(data) > 0 {
				return revertReason(data), true
			}
		}
	}
	text := strings.ToLower(answer.Error())
	for _, word := range refusals {
		if strings.Contains(text, word) {
			return plain(node.Reason(err)), true
		}
	}
	return "", false
}

// revertReason decodes the data of a revert: Error(string), Panic(uint256), or an error of the
// treasury or the registries with its arguments.
func revertReason(data []byte) string {
	if text, err := abi.UnpackRevert(data); err == nil {
		return plain(text)
	}
	if len(data) < 4 {
		return fmt.Sprintf("reverted with 0x%x", data)
	}
	for _, of := range []abi.ABI{bindings.NewOpenFiTreasury().GetABI(), bindings.NewIdentityRegistry().GetABI(),
		bindings.NewReputationRegistry().GetABI(), bindings.NewValidationRegistry().GetABI()} {
		e, err := of.ErrorByID([4]byte(data[:4]))
		if err != nil {
			continue
		}
		values, err := e.Inputs.Unpack(data[4:])
		if err != nil {
			break
		}
		return plain(e.Name + "(" + arguments(e.Inputs, values) + ")")
	}
	return fmt.Sprintf("reverted with 0x%x", data[:min(len(data), 68)])
}

// arguments reads like "amount 101, cap 100".
func arguments(of abi.Arguments, values []any) string {
	var out []string
	for i, v := range values {
		switch bytes := v.(type) {
		case [32]byte:
			v = common.Hash(bytes)
		case [4]byte:
			v = hexutil.Encode(bytes[:])
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %v", of[i].Name, v)))
	}
	return strings.Join(out, ", ")
}
