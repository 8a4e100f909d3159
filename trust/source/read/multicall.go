package read

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/trust/source"
)

// multicall makes many calls in one through Multicall3, which returns what each of them returned or was reverted with.
type multicall struct {
	address common.Address
	method  abi.Method
}

// call3 is a call as aggregate3 takes it.
type call3 struct {
	Target       common.Address
	AllowFailure bool
	CallData     []byte
}

// answer is what one call returned, or was reverted with.
type answer struct {
	Success    bool
	ReturnData []byte
}

const aggregate3 = `[{"type":"function","name":"aggregate3","stateMutability":"payable",
	"inputs":[{"name":"calls","type":"tuple[]","components":[{"name":"target","type":"address"},
		{"name":"allowFailure","type":"bool"},{"name":"callData","type":"bytes"}]}],
	"outputs":[{"name":"returnData","type":"tuple[]","components":[{"name":"success","type":"bool"},
		{"name":"returnData","type":"bytes"}]}]}]`

// newMulticall parses the interface of Multicall3, which fails only where the text above is wrong.
func newMulticall(address common.Address) (*multicall, error) {
	parsed, err := abi.JSON(strings.NewReader(aggregate3))
	if err != nil {
		return nil, fmt.Errorf("interface of Multicall3: %w", err)
	}
	return &multicall{address, parsed.Methods["aggregate3"]}, nil
}

const (
	// gasAtOnce is how much gas the calls of one request take by their declarations. Nodes allow 50 million. Reading an
	// attestation takes some 20,000, so that three calls for each of 10,000 raters are 18 requests.
	gasAtOnce = 34_000_000
	// gasAtLeast is the gas of a request for all that follow, where larger ones were refused.
	gasAtLeast = 4_000_000
	// maxRefused is how often an endpoint may refuse so many calls before it is not asked any more.
	maxRefused = 24
)

// exchange is one series of questions to one endpoint at a block.
type exchange struct {
	*multicall
	node    *node.Node
	at      repute.Block
	gas     uint64 // of one request
	refused int
	any     bool  // it answered once
	last    error // the last refusal
}

// ask makes all calls.
func (m *multicall) ask(ctx context.Context, n *node.Node, at repute.Block, queries []source.Query) ([]answer, error) {
	e := &exchange{multicall: m, node: n, at: at, gas: gasAtOnce}
	out := make([]answer, 0, len(queries))
	for len(queries) > 0 {
		part := e.portion(queries)
		got, err := e.some(ctx, part)
		if err != nil {
			return nil, err
		}
		out, queries = append(out, got...), queries[len(part):]
	}
	if !e.any && e.last != nil {
		return nil, e.last
	}
	return out, nil
}

// portion returns the first queries that one request has the gas for, at least one.
func (e *exchange) portion(queries []source.Query) []source.Query {
	var gas uint64
	for i, q := range queries {
		if gas += q.Gas; gas > e.gas && i > 0 {
			return queries[:i]
		}
	}
	return queries
}

// some makes calls in one, or in halves where the endpoint refuses so many. A single call that is refused has no
// answer.
func (e *exchange) some(ctx context.Context, queries []source.Query) ([]answer, error) {
	var got []answer
	err := patiently(ctx, func() (err error) {
		got, err = e.once(ctx, queries)
		return err
	})
	e.any = e.any || err == nil
	if err == nil || !tooMany(err) {
		return got, err
	}
	if e.refused++; e.refused > maxRefused {
		return nil, err
	}
	e.last = err
	if len(queries) == 1 {
		return []answer{{}}, nil
	}
	half := (len(queries) + 1) / 2
	var gas uint64
	for _, q := range queries[:half] {
		gas += q.Gas
	}
	e.gas = min(e.gas, max(gas, gasAtLeast))
	first, err := e.some(ctx, queries[:half])
	if err != nil {
		return nil, err
	}
	second, err := e.some(ctx, queries[half:])
	return append(first, second...), err
}

// tooMany reports whether fewer calls may be answered: too much gas, too many bytes, or words that nobody knows.
func tooMany(err error) bool {
	if errors.Is(err, node.ErrMoved) || errors.Is(err, node.ErrNoState) {
		return false
	}
	fault := jsonrpc.Diagnose(err).Fault
	return errors.Is(err, node.ErrReverted) || fault == jsonrpc.FaultRange || fault == jsonrpc.FaultMalformed
}

// once makes one call of aggregate3.
func (e *exchange) once(ctx context.Context, queries []source.Query) ([]answer, error) {
	calls := make([]call3, len(queries))
	for i, q := range queries {
		calls[i] = call3{q.To, true, q.Data}
	}
	data, err := e.method.Inputs.Pack(calls)
	if err != nil {
		return nil, fmt.Errorf("encode calls: %w", err)
	}
	results, err := e.node.Calls(ctx, e.at, []node.Call{{To: e.address, Data: append(e.method.ID[:4:4], data...)}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return nil, err
	}
	answers, err := e.decode(results[0].Data)
	if err == nil && len(answers) != len(queries) {
		err = fmt.Errorf("%d answers to %d calls", len(answers), len(queries))
	}
	if err != nil {
		return nil, &jsonrpc.AnswerError{What: e.node.Host() + " answers for Multicall3 with something else: " +
			err.Error()}
	}
	return answers, nil
}

// decode reads what aggregate3 returned. The caller compares the number of answers with that of its calls.
func (e *exchange) decode(data []byte) ([]answer, error) {
	values, err := e.method.Outputs.Unpack(data)
	if err != nil {
		return nil, err
	}
	return *abi.ConvertType(values[0], new([]answer)).(*[]answer), nil
}
