package chainserver

import (
	"encoding/json"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// Chain is what the answers about blocks and logs are made from.
type Chain interface {
	// Block returns a block, nil where the node does not know one.
	Block(r Ref) (*Block, *Error)
	// Logs returns the logs of a question: []types.Log, or, unless decoded is set, a *Stream.
	Logs(q *Query, decoded bool) (any, *Error)
	// Other answers every other method.
	Other(c *Call) (any, *Error)
}

// Block is a block of a Chain. Transactions and receipts are functions, because making them may be expensive and most
// questions are about headers.
type Block struct {
	Header       *types.Header
	Transactions func() ([]common.Hash, error)
	Receipts     func() (types.Receipts, error)
}

// Options of a chain's server.
type Options struct {
	NoBlockTime bool // logs come without blockTimestamp, as old nodes answer; not of a Stream
}

// Serve returns a server of a chain.
func Serve(c Chain, o Options) *Server {
	s := New(nil)
	s.source = &chainSource{Server: s, chain: c, timeless: o.NoBlockTime}
	return s
}

// chainSource answers the methods that all chains have.
type chainSource struct {
	*Server  // with the changes of logs
	chain    Chain
	timeless bool
}

// Answer implements Source.
func (s *chainSource) Answer(c *Call) (any, *Error) {
	switch c.Method {
	case "eth_blockNumber":
		b, fail := s.chain.Block(Ref{})
		if b == nil || fail != nil {
			return nil, fail
		}
		return (*hexutil.Big)(b.Header.Number), nil
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		b, fail := s.block(c)
		if b == nil || fail != nil {
			return nil, fail
		}
		return b.json()
	case "eth_getBlockReceipts":
		b, fail := s.block(c)
		if b == nil || fail != nil {
			return nil, fail
		}
		list, err := b.Receipts()
		if err != nil {
			return nil, Internal(err)
		}
		return list, nil
	case "eth_getLogs":
		return s.logs(c)
	}
	return s.chain.Other(c)
}

// block finds the block that the first parameter names; nil without an error where there is none, which nodes answer
// with null.
func (s *chainSource) block(c *Call) (*Block, *Error) {
	var ref Ref
	if fail := c.Param(0, &ref); fail != nil {
		return nil, fail
	}
	return s.chain.Block(ref)
}

// json returns the block as nodes do that were asked for no whole transactions.
func (b *Block) json() (any, *Error) {
	hashes, err := b.Transactions()
	if err != nil {
		return nil, Internal(err)
	}
	header, err := json.Marshal(b.Header)
	if err != nil {
		return nil, Internal(err)
	}
	rest, err := json.Marshal(struct {
		Transactions []common.Hash `json:"transactions"`
		Uncles       []common.Hash `json:"uncles"`
	}{append([]common.Hash{}, hashes...), []common.Hash{}})
	if err != nil {
		return nil, Internal(err)
	}
	return json.RawMessage(slices.Concat(header[:len(header)-1], []byte(","), rest[1:])), nil
}

// logs answers eth_getLogs. Logs are decoded only where a change of logs needs them; otherwise a stream passes as
// it is.
func (s *chainSource) logs(c *Call) (any, *Error) {
	var q Query
	if len(c.Params) != 1 {
		return nil, Errorf(-32602, "invalid argument 0")
	}
	if fail := c.Param(0, &q); fail != nil {
		return nil, fail
	}
	// A range of one block is a question about one block, as is one by a hash.
	maps := s.logMapsOf(q.BlockHash == nil && q.FromBlock.String() != q.ToBlock.String())
	found, fail := s.chain.Logs(&q, len(maps) > 0)
	list, ok := found.([]types.Log)
	if !ok || fail != nil {
		return found, fail
	}
	for _, m := range maps {
		list = m(list)
	}
	if s.timeless {
		return withoutTime(list)
	}
	return list, nil
}

// withoutTime leaves out the member blockTimestamp, which old nodes do not have.
func withoutTime(list []types.Log) (any, *Error) {
	out := make([]map[string]any, len(list))
	raw, err := json.Marshal(list)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return nil, Internal(err)
	}
	for _, l := range out {
		delete(l, "blockTimestamp")
	}
	return out, nil
}

// Ref names a block by tag, number or hash, in any form of EIP-1898. The zero value is the newest block.
type Ref = rpc.BlockNumberOrHash

// Tags are the blocks that tags stand for.
type Tags struct {
	First, Head     uint64
	Safe, Finalized uint64 // 0: there is none yet
}

// Number returns the number of the block that a tag or a number names; nil is the newest one. It reports
// false where the chain has no such block.
func (t Tags) Number(tag *rpc.BlockNumber) (n uint64, ok bool) {
	if tag == nil {
		return t.Head, true
	}
	switch *tag {
	case rpc.LatestBlockNumber, rpc.PendingBlockNumber:
		return t.Head, true
	case rpc.SafeBlockNumber:
		return t.Safe, t.Safe > 0
	case rpc.FinalizedBlockNumber:
		return t.Finalized, t.Finalized > 0
	case rpc.EarliestBlockNumber:
		return t.First, true
	}
	n = uint64(*tag)
	return n, n >= t.First && n <= t.Head
}

// Query is the filter object of eth_getLogs. With BlockHash the range is not looked at. Addresses and each place of
// topics match any value where they are empty.
type Query struct {
	BlockHash *common.Hash
	FromBlock Ref
	ToBlock   Ref
	Address   anyOf[common.Address]
	Topics    []anyOf[common.Hash]
}

// anyOf reads a value, a list of them, or null for any.
type anyOf[T comparable] []T

// UnmarshalJSON reads a value, several, or null for any.
func (a *anyOf[T]) UnmarshalJSON(raw []byte) error {
	var one *T
	if json.Unmarshal(raw, &one) == nil {
		if one != nil {
			*a = anyOf[T]{*one}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]T)(a))
}

// matches reports whether x is wanted; an empty list wants any.
func (a anyOf[T]) matches(x T) bool { return len(a) == 0 || slices.Contains(a, x) }

// Matches reports whether a log has an address and the topics that are asked for.
func (q *Query) Matches(l *types.Log) bool {
	if !q.Address.matches(l.Address) {
		return false
	}
	for i, wanted := range q.Topics {
		if len(wanted) > 0 && (i >= len(l.Topics) || !wanted.matches(l.Topics[i])) {
			return false
		}
	}
	return true
}

// MatchesAll reports whether every log matches that has one of these addresses and first topics.
func (q *Query) MatchesAll(addresses []common.Address, topics []common.Hash) bool {
	for _, a := range addresses {
		if !q.Address.matches(a) {
			return false
		}
	}
	for i, wanted := range q.Topics {
		if len(wanted) > 0 && (i > 0 || slices.ContainsFunc(topics,
			func(t common.Hash) bool { return !wanted.matches(t) })) {
			return false
		}
	}
	return true
}
