package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	endpoints "repute/indexer/node"
	"repute/trust/source"
	"repute/trust/source/read"
)

// SourceCalls is how often a node is called to read one source: G9.
type SourceCalls struct {
	Source string `json:"source"`
	Raters int    `json:"raters"`
	Calls  int64  `json:"calls"` // eth_call, each of many calls at once
}

// sourceCalls reads the source that makes most calls about so many raters, all of whom hold its credential.
func sourceCalls(ctx context.Context, p *source.Policy, raters int) (out SourceCalls, err error) {
	s := &p.Sources[0]
	for i := range p.Sources {
		if len(p.Sources[i].Read.Calls) > len(s.Read.Calls) {
			s = &p.Sources[i]
		}
	}
	chain := s.Homes[0].Chain
	e, err := newYesEndpoint(chain)
	if err != nil {
		return out, err
	}
	url, stop, err := e.serve(ctx)
	if err != nil {
		return out, err
	}
	defer stop()
	n, err := endpoints.New(url, endpoints.Options{})
	if err != nil {
		return out, err
	}
	pool := endpoints.NewPool([]*endpoints.Node{n}, endpoints.PoolOptions{ChainID: chain})
	defer pool.Close()
	reader, err := read.New(p.Multicall, map[uint64]*endpoints.Pool{chain: pool})
	if err != nil {
		return out, err
	}
	list := make([]common.Address, raters)
	for i := range list {
		list[i] = common.BigToAddress(big.NewInt(1<<40 + int64(i)))
	}
	found, err := reader.Read(ctx, chain, e.at(), []*source.Source{s}, list, source.Past{})
	if err == nil && (found[0].Status != source.StatusOK || len(found[0].Credentials) != raters) {
		err = fmt.Errorf("source %s is %s with %d credentials: %s", s.ID, found[0].Status, len(found[0].Credentials),
			found[0].Reason)
	}
	return SourceCalls{s.ID, raters, e.calls.Load()}, err
}

// yesEndpoint is a node of one block on which every contract returns 1 to every call, through Multicall3. It counts
// calls.
type yesEndpoint struct {
	chain     uint64
	header    *types.Header
	aggregate abi.Method
	calls     atomic.Int64
}

func newYesEndpoint(chain uint64) (*yesEndpoint, error) {
	parsed, err := abi.JSON(strings.NewReader(`[{"type":"function","name":"aggregate3",
		"inputs":[{"name":"calls","type":"tuple[]","components":[{"name":"target","type":"address"},
			{"name":"allowFailure","type":"bool"},{"name":"callData","type":"bytes"}]}],
		"outputs":[{"name":"returnData","type":"tuple[]","components":[{"name":"success","type":"bool"},
			{"name":"returnData","type":"bytes"}]}]}]`))
	if err != nil {
		return nil, fmt.Errorf("interface of Multicall3: %w", err)
	}
	return &yesEndpoint{chain: chain, aggregate: parsed.Methods["aggregate3"], header: &types.Header{
		Number: big.NewInt(1000), Time: 1_750_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(1),
		UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash}}, nil
}

// at is the endpoint's block.
func (e *yesEndpoint) at() repute.Block {
	return repute.Block{Number: e.header.Number.Uint64(), Hash: e.header.Hash(), Parent: e.header.ParentHash,
		Time: time.Unix(int64(e.header.Time), 0).UTC()}
}

// serve answers on a free port of this machine until stop is called.
func (e *yesEndpoint) serve(ctx context.Context) (url string, stop func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve an endpoint: %w", err)
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // it ends with stop
	return "http://" + l.Addr().String(), func() { _ = server.Close(); <-done }, nil
}

// question is a call of JSON-RPC, and reply its answer.
type (
	question struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	reply struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  any             `json:"result"`
	}
)

// ServeHTTP answers one question or a batch.
func (e *yesEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var batch []question
	isBatch := json.Unmarshal(body, &batch) == nil
	if !isBatch {
		batch = make([]question, 1)
		if err := json.Unmarshal(body, &batch[0]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	replies := make([]reply, len(batch))
	for i, q := range batch {
		result, err := e.answer(q)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		replies[i] = reply{"2.0", q.ID, result}
	}
	var out any = replies
	if !isBatch {
		out = replies[0]
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the reader notices a connection that ended
}

func (e *yesEndpoint) answer(q question) (any, error) {
	switch q.Method {
	case "eth_chainId":
		return hexutil.Uint64(e.chain), nil
	case "eth_blockNumber":
		return (*hexutil.Big)(e.header.Number), nil
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		return e.block()
	case "eth_getCode":
		return hexutil.Bytes{1}, nil
	case "eth_getStorageAt":
		return common.Hash{}, nil
	case "eth_call":
		e.calls.Add(1)
		return e.call(q)
	}
	return nil, fmt.Errorf("%s is not answered", q.Method)
}

// block is the endpoint's block as nodes tell it.
func (e *yesEndpoint) block() (map[string]any, error) {
	text, err := json.Marshal(e.header)
	if err != nil {
		return nil, fmt.Errorf("encode a header: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("decode a header: %w", err)
	}
	out["hash"], out["transactions"], out["uncles"] = e.header.Hash(), []string{}, []string{}
	return out, nil
}

// call is aggregate3: every call returns 1.
func (e *yesEndpoint) call(q question) (hexutil.Bytes, error) {
	var asked struct {
		Data hexutil.Bytes `json:"data"`
	}
	if len(q.Params) == 0 {
		return nil, fmt.Errorf("eth_call without parameters")
	}
	if err := json.Unmarshal(q.Params[0], &asked); err != nil || len(asked.Data) < 4 {
		return nil, fmt.Errorf("eth_call with %.60s: %w", q.Params[0], err)
	}
	values, err := e.aggregate.Inputs.Unpack(asked.Data[4:])
	if err != nil {
		return nil, fmt.Errorf("decode calls: %w", err)
	}
	type made struct {
		Target       common.Address
		AllowFailure bool
		CallData     []byte
	}
	type returned struct {
		Success    bool
		ReturnData []byte
	}
	calls := *abi.ConvertType(values[0], new([]made)).(*[]made)
	out := make([]returned, len(calls))
	for i := range out {
		out[i] = returned{true, common.BigToHash(big.NewInt(1)).Bytes()}
	}
	return e.aggregate.Outputs.Pack(out)
}
