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
	"repute/internal/bench"
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

// sourceCalls reads the source that makes most calls about so many raters, all of whom hold its credential.
func sourceCalls(ctx context.Context, p *source.Policy, raters int) (out SourceCalls, err error) {
	s := &p.Sources[0]
	for i := range p.Sources {
		if len(p.Sources[i].Read.Calls) > len(s.Read.Calls) {
			s = &p.Sources[i]
		}
	}
	chain := s.Homes[0].Chain
	e := newYesChain(chain)
	url, stop, err := bench.Serve(chainserver.Serve(e, chainserver.Options{}))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, stop()) }()
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

// yesChain is a chain of one block on which every contract returns 1 to every call, through
// Multicall3. It counts calls.
type yesChain struct {
	id     uint64
	header *types.Header
	calls  atomic.Int64
}

func newYesChain(id uint64) *yesChain {
	return &yesChain{id: id, header: &types.Header{
		Number: big.NewInt(1000), Time: 1_750_000_000, Difficulty: new(big.Int), BaseFee: big.NewInt(1),
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
func (e *yesChain) Logs(*chainserver.Query, bool) (any, *chainserver.Error) {
	return []types.Log{}, nil
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

func (e *yesChain) call(c *chainserver.Call) (any, *chainserver.Error) {
	var asked struct {
		Data hexutil.Bytes `json:"data"`
	}
	if fail := c.Param(0, &asked); fail != nil {
		return nil, fail
	}
	out, err := chainserver.Aggregate3(asked.Data, func(common.Address, []byte) (bool, []byte) {
		return true, common.BigToHash(common.Big1).Bytes()
	})
	if err != nil {
		return nil, chainserver.Internal(err)
	}
	return hexutil.Bytes(out), nil
}
