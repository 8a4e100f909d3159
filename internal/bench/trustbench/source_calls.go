package trustbench

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	endpoints "repute/indexer/node"
	"repute/internal/bench/harness"
	"repute/internal/chainserver"
	"repute/trust/source"
	"repute/trust/source/read"
)

// SourceCalls is how often a node is called to read one source: G9.
type SourceCalls struct {
	Source string `json:"source"`
	Raters int    `json:"raters"`
	Calls  int64  `json:"calls"` // eth_call, each of many calls at once
}

// sourceCalls reads the source of names and the other source that have most steps about the given number of raters,
// which all hold the credential, and returns the one that makes more calls.
func sourceCalls(ctx context.Context, p *source.Policy, raters int) (out SourceCalls, err error) {
	list := make([]common.Address, raters)
	for i := range list {
		list[i] = common.BigToAddress(big.NewInt(1<<40 + int64(i)))
	}
	for _, names := range []bool{false, true} {
		var most *source.Source
		for i := range p.Sources {
			s := &p.Sources[i]
			if namesOf(s) == names && (most == nil || len(s.Read.Calls) > len(most.Read.Calls)) {
				most = s
			}
		}
		calls, err := callsOf(ctx, p, most, list)
		if err != nil {
			return out, err
		}
		if calls > out.Calls { // the target is for the dearer of both
			out = SourceCalls{most.ID, raters, calls}
		}
	}
	return out, nil
}

// callsOf returns how many calls one reading of a source makes, at its first home. It is an error if the reading does
// not find the credential of every rater: one that gives up early makes few calls.
func callsOf(ctx context.Context, p *source.Policy, s *source.Source,
	raters []common.Address) (calls int64, err error) {
	home := &s.Homes[0]
	e := newYesChain(home.Chain)
	if namesOf(s) {
		e.register(home, raters)
	}
	url, stop, err := harness.Serve(chainserver.Serve(e, chainserver.Options{}))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	n, err := endpoints.New(url, endpoints.Options{})
	if err != nil {
		return 0, err
	}
	pool := endpoints.NewPool([]*endpoints.Node{n}, endpoints.PoolOptions{ChainID: home.Chain})
	defer pool.Close()
	reader, err := read.New(p.Multicall, map[uint64]*endpoints.Pool{home.Chain: pool})
	if err != nil {
		return 0, err
	}
	found, err := reader.Read(ctx, home.Chain, e.at(), []*source.Source{s}, raters, source.Past{})
	if err == nil && (found[0].Status != source.StatusOK || len(found[0].Credentials) != len(raters)) {
		err = fmt.Errorf("source %s is %s with %d credentials: %s", s.ID, found[0].Status, len(found[0].Credentials),
			found[0].Reason)
	}
	return e.calls.Load(), err
}

// yesChain is a chain of one block on which every contract returns 1 to every call, through
// Multicall3, unless register has given other answers. It counts calls.
type yesChain struct {
	id      uint64
	header  *types.Header
	calls   atomic.Int64
	answers map[string][]byte // by calldata
	logs    []types.Log
}

// newYesChain makes a chain whose single block is later than the first block of every source, with the header of an
// empty block, whose hash readers check.
func newYesChain(id uint64) *yesChain {
	return &yesChain{id: id, answers: map[string][]byte{}, header: &types.Header{
		Number: big.NewInt(10_000_000), // after the first block of every source
		Time:   1_750_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(1),
		UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash}}
}

// at is the chain's block.
func (e *yesChain) at() repute.Block {
	return repute.Block{Number: e.header.Number.Uint64(), Hash: e.header.Hash(), Parent: e.header.ParentHash,
		Time: time.Unix(int64(e.header.Time), 0).UTC()}
}

// Block implements chainserver.Chain.
func (e *yesChain) Block(chainserver.Ref) (*chainserver.Block, *chainserver.Error) {
	return &chainserver.Block{Header: e.header, Transactions: func() ([]common.Hash, error) { return nil, nil }}, nil
}

// Logs implements chainserver.Chain.
func (e *yesChain) Logs(q *chainserver.Query, _ bool) (any, *chainserver.Error) {
	out := []types.Log{}
	for i := range e.logs {
		if q.Matches(&e.logs[i]) {
			out = append(out, e.logs[i])
		}
	}
	return out, nil
}

// Other implements chainserver.Chain.
func (e *yesChain) Other(c *chainserver.Call) (any, *chainserver.Error) {
	switch c.Method {
	case "eth_chainId":
		return hexutil.Uint64(e.id), nil
	case "eth_getCode":
		return hexutil.Bytes{1}, nil
	case "eth_getStorageAt":
		return common.Hash{}, nil
	case "eth_call":
		e.calls.Add(1)
		return e.call(c)
	}
	return nil, chainserver.NotFound(c.Method)
}

// call answers eth_call of Multicall3.
func (e *yesChain) call(c *chainserver.Call) (any, *chainserver.Error) {
	var asked struct {
		Data hexutil.Bytes `json:"data"`
	}
	if fail := c.Param(0, &asked); fail != nil {
		return nil, fail
	}
	out, err := chainserver.Aggregate3(asked.Data, func(_ common.Address, data []byte) (bool, []byte) {
		if known, has := e.answers[string(data)]; has {
			return true, known
		}
		return true, common.BigToHash(common.Big1).Bytes()
	})
	if err != nil {
		return nil, chainserver.Internal(err)
	}
	return hexutil.Bytes(out), nil
}
