package chainserver

import (
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
)

// aggregate3 is the ABI of Multicall3's function, which is at one address on most chains.
const aggregate3 = `[{"type":"function","name":"aggregate3",
	"inputs":[{"name":"calls","type":"tuple[]","components":[{"name":"target","type":"address"},
		{"name":"allowFailure","type":"bool"},{"name":"callData","type":"bytes"}]}],
	"outputs":[{"name":"returnData","type":"tuple[]","components":[{"name":"success","type":"bool"},
		{"name":"returnData","type":"bytes"}]}]}]`

// Aggregate3 executes a call of Multicall3's function aggregate3: make answers each call in it.
func Aggregate3(data []byte, make func(to common.Address, data []byte) (ok bool, returned []byte)) ([]byte, error) {
	parsed, err := abi.JSON(strings.NewReader(aggregate3))
	if err != nil {
		return nil, fmt.Errorf("interface of Multicall3: %w", err)
	}
	method, err := parsed.MethodById(data)
	if err != nil {
		return nil, fmt.Errorf("call of Multicall3: %w", err)
	}
	values, err := method.Inputs.Unpack(data[4:])
	if err != nil {
		return nil, fmt.Errorf("call of Multicall3: %w", err)
	}
	type call struct {
		Target       common.Address
		AllowFailure bool
		CallData     []byte
	}
	type result struct {
		Success    bool
		ReturnData []byte
	}
	var out []result
	for _, c := range *abi.ConvertType(values[0], new([]call)).(*[]call) {
		ok, returned := make(c.Target, c.CallData)
		out = append(out, result{ok, returned})
	}
	return method.Outputs.Pack(out)
}
