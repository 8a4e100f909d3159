package rpctest

import (
	"net/http"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"repute/internal/chainserver"
)

// What rules see and answer: see package chainserver.
type (
	Call   = chainserver.Call
	Answer = chainserver.Answer
	Error  = chainserver.Error
	Rule   = chainserver.Rule
)

// ServeHTTP answers a call or a batch, or opens a WebSocket.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" && !c.Dark() {
		c.socket(w, r)
		return
	}
	c.sync()
	c.Server.ServeHTTP(w, r)
}

// source is the chain as its server sees it.
type source struct{ c *Chain }

// Block implements chainserver.Chain.
func (s source) Block(r chainserver.Ref) (*chainserver.Block, *Error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	b := s.c.find(r)
	if b == nil {
		return nil, nil
	}
	return &chainserver.Block{Header: b.Header,
		Receipts: func() (types.Receipts, error) { return b.Receipts, nil },
		Transactions: func() (hashes []common.Hash, err error) {
			for _, tx := range b.Txs {
				hashes = append(hashes, tx.Hash())
			}
			return hashes, nil
		}}, nil
}

// find returns a canonical block, or any block by its hash.
func (c *Chain) find(r chainserver.Ref) *Block {
	if hash, ok := r.Hash(); ok {
		return c.byHash[hash]
	}
	tags := chainserver.Tags{First: c.opts.Genesis, Head: c.headNumber(), Safe: c.safe, Finalized: c.finalized}
	n, ok := tags.Number(r.BlockNumber)
	if !ok {
		return nil
	}
	return c.at(n)
}

// headNumber is the newest block that the node knows: below the true head while it lags. c.mu is held.
func (c *Chain) headNumber() uint64 {
	head := c.blocks[len(c.blocks)-1].Number()
	if c.seen != nil {
		return min(head, *c.seen)
	}
	return head
}

// at is the canonical block with a number, nil below the first block and above the head that the node knows. c.mu is
// held.
func (c *Chain) at(n uint64) *Block {
	if n < c.opts.Genesis || n > c.headNumber() {
		return nil
	}
	return c.blocks[n-c.opts.Genesis]
}

// Logs implements chainserver.Chain.
func (s source) Logs(q *chainserver.Query, _ bool) (any, *Error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	blocks, fail := s.c.selected(q)
	found := []types.Log{}
	for _, b := range blocks {
		for _, l := range b.Logs() {
			if q.Matches(&l) {
				found = append(found, l)
			}
		}
	}
	return found, fail
}

// selected lists the blocks of a question about logs. As real nodes do, it is silent about blocks above the head
// and refuses a hash that it does not know. c.mu is held.
func (c *Chain) selected(q *chainserver.Query) ([]*Block, *Error) {
	if q.BlockHash != nil {
		b := c.byHash[*q.BlockHash]
		if b == nil {
			return nil, chainserver.Errorf(-32000, "unknown block")
		}
		return []*Block{b}, nil
	}
	first, ok := q.FromBlock.Number()
	last, ok2 := q.ToBlock.Number()
	if !ok || !ok2 || first < 0 || first > last { // tags are below 0
		return nil, chainserver.Errorf(-32602, "invalid block range params")
	}
	from, to := uint64(first), uint64(last)
	var out []*Block
	for n := from; n <= min(to, c.headNumber()); n++ { // a lagging node is silent about the rest
		if b := c.at(n); b != nil {
			out = append(out, b)
		}
	}
	return out, nil
}

// Other implements chainserver.Chain.
func (s source) Other(c *Call) (any, *Error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	switch c.Method {
	case "eth_chainId":
		return hexutil.Uint64(s.c.id), nil
	case "eth_getTransactionReceipt":
		var tx common.Hash
		fail := c.Param(0, &tx)
		return s.c.receipt(tx), fail
	}
	return nil, chainserver.NotFound(c.Method)
}

// receipt returns that of a transaction in a canonical block, nil where there is none.
func (c *Chain) receipt(tx common.Hash) any {
	for _, b := range c.blocks {
		for _, r := range b.Receipts {
			if r.TxHash == tx {
				return r
			}
		}
	}
	return nil
}
