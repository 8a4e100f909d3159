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

// multicall makes many contract calls in one eth_call through the contract Multicall3.
type multicall struct {
	address common.Address
	method  abi.Method
}

// call3 is the struct Call3 of Multicall3.
type call3 struct {
	Target       common.Address
	AllowFailure bool
	CallData     []byte
}

// answer is the struct Result of Multicall3: the data that a call returned, or without success the data of its revert.
type answer struct {
	Success    bool
	ReturnData []byte
}

const aggregate3 = `[{"type":"function","name":"aggregate3","stateMutability":"payable",
	"inputs":[{"name":"calls","type":"tuple[]","components":[{"name":"target","type":"address"},
		{"name":"allowFailure","type":"bool"},{"name":"callData","type":"bytes"}]}],
	"outputs":[{"name":"returnData","type":"tuple[]","components":[{"name":"success","type":"bool"},
		{"name":"returnData","type":"bytes"}]}]}]`

// newMulticall returns a multicall that uses the Multicall3 at an address.
func newMulticall(address common.Address) (*multicall, error) {
	parsed, err := abi.JSON(strings.NewReader(aggregate3))
	if err != nil {
		return nil, fmt.Errorf("interface of Multicall3: %w", err)
	}
	return &multicall{address, parsed.Methods["aggregate3"]}, nil
}

const (
	// callsAtOnce is how many calls one request has at first. Nodes allow 50 million gas for a request, and reading an
	// attestation takes some 20,000. Three calls for each of 10,000 raters take 18 requests.
	callsAtOnce = 1_700
	// callsAtLeast is the lower limit of the size of later requests, which shrinks when an endpoint refuses a request.
	callsAtLeast = 200
	// maxRefused is how many requests an endpoint may refuse before ask fails.
	maxRefused = 24
)

// exchange is the state of one call of ask: a series of requests to one endpoint at a block.
type exchange struct {
	*multicall
	node    *node.Node
	at      repute.Block
	size    int   // calls of the next request
	refused int   // requests that the endpoint refused because of their size
	any     bool  // the endpoint answered at least one request
	last    error // the last refusal
}

// ask makes all calls at one endpoint and returns one answer for each query.
func (m *multicall) ask(ctx context.Context, n *node.Node, at repute.Block, queries []source.Query) ([]answer, error) {
	e := &exchange{multicall: m, node: n, at: at, size: callsAtOnce}
	out := make([]answer, 0, len(queries))
	for len(queries) > 0 {
		part := queries[:min(e.size, len(queries))]
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

// some makes calls in one request, and splits them in halves when the endpoint refuses the request because of its size.
// A single call that the endpoint refuses has an answer without success and without data.
func (e *exchange) some(ctx context.Context, queries []source.Query) ([]answer, error) {
	var got []answer
	err := retry(ctx, func() (err error) {
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
	e.size = min(e.size, max(half, callsAtLeast))
	first, err := e.some(ctx, queries[:half])
	if err != nil {
		return nil, err
	}
	second, err := e.some(ctx, queries[half:])
	return append(first, second...), err
}

// tooMany reports whether a smaller request may succeed: after an error about gas or size, and after an unrecognized
// error.
func tooMany(err error) bool {
	if errors.Is(err, node.ErrMoved) || errors.Is(err, node.ErrNoState) {
		return false
	}
	fault := jsonrpc.Diagnose(err).Fault
	return errors.Is(err, node.ErrReverted) || fault == jsonrpc.FaultRange || fault == jsonrpc.FaultMalformed
}

// once sends one call of aggregate3 and decodes its answers.
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
		return nil, &jsonrpc.AnswerError{
			What: e.node.Host() + " answers for Multicall3 with something else: " + err.Error()}
	}
	return answers, nil
}

// decode decodes the returned data of aggregate3.
func (e *exchange) decode(data []byte) ([]answer, error) {
	values, err := e.method.Outputs.Unpack(data)
	if err != nil {
		return nil, err
	}
	return *abi.ConvertType(values[0], new([]answer)).(*[]answer), nil
}
