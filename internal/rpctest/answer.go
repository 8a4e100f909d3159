package rpctest

import (
	"encoding/json"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// answer is what an honest node says.
func (c *Chain) answer(call request) (any, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch call.Method {
	case "eth_chainId":
		return hexutil.Uint64(c.id), nil
	case "eth_blockNumber":
		return hexutil.Uint64(c.headNumber()), nil
	case "eth_getBlockByNumber":
		return c.blockJSON(c.tagged(first(call))), nil
	case "eth_getBlockByHash":
		return c.blockJSON(c.byHash[common.HexToHash(first(call))]), nil
	case "eth_getBlockReceipts":
		return c.receipts(first(call)), nil
	case "eth_getTransactionReceipt":
		return c.receipt(common.HexToHash(first(call))), nil
	case "eth_getLogs":
		return c.logs(call)
	}
	return nil, errorf(-32601, "the method %s does not exist/is not available", call.Method)
}

// first is the first parameter as text.
func first(call request) (s string) {
	if len(call.Params) > 0 {
		_ = json.Unmarshal(call.Params[0], &s)
	}
	return s
}

func (c *Chain) headNumber() uint64 {
	head := c.blocks[len(c.blocks)-1].Number()
	if c.seen != nil {
		return min(head, *c.seen)
	}
	return head
}

// tagged finds a canonical block by number or tag, nil when there is none.
func (c *Chain) tagged(tag string) *Block {
	switch tag {
	case "latest":
		return c.at(c.headNumber())
	case "safe":
		return c.settled(c.safe)
	case "finalized":
		return c.settled(c.finalized)
	case "earliest":
		return c.blocks[0]
	}
	n, err := hexutil.DecodeUint64(tag)
	if err != nil {
		return nil
	}
	return c.at(n)
}

func (c *Chain) settled(n uint64) *Block {
	if n == 0 {
		return nil
	}
	return c.at(n)
}

func (c *Chain) at(n uint64) *Block {
	if n < c.opts.Genesis || n > c.headNumber() {
		return nil
	}
	return c.blocks[n-c.opts.Genesis]
}

// blockJSON gives the header's fields with the hash and the transactions'
// hashes, as eth_getBlockByNumber(…, false) does.
func (c *Chain) blockJSON(b *Block) any {
	if b == nil {
		return nil
	}
	raw, err := json.Marshal(b.Header)
	must(err)
	fields := map[string]any{}
	must(json.Unmarshal(raw, &fields))
	hashes := make([]common.Hash, 0, len(b.Txs))
	for _, tx := range b.Txs {
		hashes = append(hashes, tx.Hash())
	}
	fields["hash"] = b.Hash()
	fields["transactions"] = hashes
	fields["uncles"] = []common.Hash{}
	return fields
}

func (c *Chain) receipts(ref string) any {
	b := c.tagged(ref)
	if len(ref) == 66 {
		b = c.byHash[common.HexToHash(ref)]
	}
	if b == nil {
		return nil
	}
	return b.Receipts
}

// receipt is that of a transaction in a canonical block, nil when there is none.
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

// query is the filter object of eth_getLogs.
type query struct {
	BlockHash *common.Hash
	FromBlock string
	ToBlock   string
	Address   oneOrMany
	Topics    []oneOrMany
}

// oneOrMany reads a hex string, a list of them, or null: any.
type oneOrMany []string

// UnmarshalJSON reads one string, several, or null for any.
func (o *oneOrMany) UnmarshalJSON(raw []byte) error {
	var single *string
	if json.Unmarshal(raw, &single) == nil {
		if single != nil {
			*o = oneOrMany{*single}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(o))
}

func (o oneOrMany) matches(b []byte) bool {
	return len(o) == 0 || slices.ContainsFunc(o, func(s string) bool {
		return common.HexToHash(s) == common.BytesToHash(b)
	})
}

func (q query) matches(l *types.Log) bool {
	if !q.Address.matches(l.Address[:]) {
		return false
	}
	for i, want := range q.Topics {
		if len(want) > 0 && (i >= len(l.Topics) || !want.matches(l.Topics[i][:])) {
			return false
		}
	}
	return true
}

func (c *Chain) logs(call request) (any, *Error) {
	var q query
	if len(call.Params) != 1 || json.Unmarshal(call.Params[0], &q) != nil {
		return nil, errorf(-32602, "invalid argument 0")
	}
	blocks, fail := c.selected(q)
	if fail != nil {
		return nil, fail
	}
	found := []types.Log{}
	for _, b := range blocks {
		for _, l := range b.Logs() {
			if q.matches(&l) {
				found = append(found, l)
			}
		}
	}
	for _, f := range c.filters {
		found = f.fn(found)
	}
	return c.logsJSON(found), nil
}

func (c *Chain) selected(q query) ([]*Block, *Error) {
	if q.BlockHash != nil {
		b := c.byHash[*q.BlockHash]
		if b == nil {
			return nil, errorf(-32000, "unknown block")
		}
		return []*Block{b}, nil
	}
	from, err := hexutil.DecodeUint64(q.FromBlock)
	to, err2 := hexutil.DecodeUint64(q.ToBlock)
	if err != nil || err2 != nil || from > to {
		return nil, errorf(-32602, "invalid block range params")
	}
	var out []*Block
	for n := from; n <= min(to, c.headNumber()); n++ { // a lagging node is silent about the rest
		if b := c.at(n); b != nil {
			out = append(out, b)
		}
	}
	return out, nil
}

func (c *Chain) logsJSON(logs []types.Log) any {
	if !c.opts.NoBlockTime {
		return logs
	}
	raw, err := json.Marshal(logs)
	must(err)
	var out []map[string]any
	must(json.Unmarshal(raw, &out))
	for _, l := range out {
		delete(l, "blockTimestamp")
	}
	return out
}
