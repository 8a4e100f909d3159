package rpctest

import (
	"cmp"
	"encoding/binary"
	"math/big"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"

	"repute/internal/chainserver"
)

// Options shape a chain. The zero value is chain 31337 with one block per second.
type Options struct {
	ChainID     uint64
	Genesis     uint64 // number of the first block; everything below is unknown
	BlockTime   uint64 // seconds between blocks, default 1
	Start       uint64 // time of the first block, default 1,700,000,000
	NoBlockTime bool   // logs come without blockTimestamp, as old nodes answer
	Bloomless   bool   // headers have an empty bloom, whatever their blocks hold
}

// Chain is a scripted chain. All methods are safe for concurrent use.
type Chain struct {
	Registries
	*chainserver.Server
	opts Options
	srv  *httptest.Server

	mu        sync.Mutex
	id        uint64
	blocks    []*Block               // canonical, ascending from opts.Genesis
	byHash    map[common.Hash]*Block // siblings too
	salt      uint64                 // differs after every fork
	seen      *uint64                // reported head when lower than the true one
	safe      uint64
	finalized uint64

	of     *Chain // the endpoint this is a second one of; nil for the first one
	frozen bool   // set by Freeze
	others int    // endpoints made by Second

	watchers   []chan *Block // receive mined blocks; those of ended subscriptions stay
	muted      bool
	subscribed int                  // subscriptions so far
	sockets    map[*rpc.Server]bool // of open and closed connections, until HangUp
}

// Block is a mined block with its receipts.
type Block struct {
	Header   *types.Header
	Txs      types.Transactions
	Receipts types.Receipts
	hash     common.Hash
}

// Number is the block's height.
func (b *Block) Number() uint64 { return b.Header.Number.Uint64() }

// Hash is the header's hash.
func (b *Block) Hash() common.Hash { return b.hash }

// Logs returns copies of the block's logs in order.
func (b *Block) Logs() []types.Log {
	var out []types.Log
	for _, r := range b.Receipts {
		for _, l := range r.Logs {
			out = append(out, *l)
		}
	}
	return out
}

// New serves a chain that holds its first block only. It ends with the test.
func New(t testing.TB, o Options) *Chain {
	t.Helper()
	o.ChainID, o.BlockTime = cmp.Or(o.ChainID, 31337), cmp.Or(o.BlockTime, 1)
	o.Start = cmp.Or(o.Start, 1_700_000_000)
	c := &Chain{opts: o, id: o.ChainID, byHash: map[common.Hash]*Block{},
		Registries: Registries{
			Identity:   common.HexToAddress("0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"),
			Reputation: common.HexToAddress("0x8004baa17c55a88189ae136b182e5fda19de9b63"),
			Validation: common.HexToAddress("0x8004cc8439f36fd5f9f049d9ff86523df6daab58"),
		}}
	c.Server = chainserver.Serve(source{c}, chainserver.Options{NoBlockTime: o.NoBlockTime})
	c.Mine()
	c.srv = serveAt(t, "127.0.0.1", c)
	return c
}

// URL is where the chain is served.
func (c *Chain) URL() string { return c.srv.URL }

// Mine adds one block holding the given transactions, each a list of logs of
// which address, topics and data count. The logs of the returned block have
// their places. A lagging node does not know the block, and still announces it.
func (c *Chain) Mine(txs ...[]types.Log) *Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.build(txs)
	c.blocks = append(c.blocks, b)
	c.byHash[b.Hash()] = b
	for _, w := range c.watchers {
		select {
		case w <- b:
		default: // the subscription ended
		}
	}
	return b
}

// MineEmpty adds n blocks without logs.
func (c *Chain) MineEmpty(n int) {
	for range n {
		c.Mine()
	}
}

// Fork drops every block above at; what is mined next becomes its sibling. The
// dropped blocks stay known by hash, as on a real node.
func (c *Chain) Fork(at uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.salt++
	for i, b := range c.blocks {
		if b.Number() > at {
			c.blocks = c.blocks[:i:i]
			return
		}
	}
}

// Blocks returns the canonical chain, ascending.
func (c *Chain) Blocks() []*Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.blocks)
}

// Head is the newest canonical block.
func (c *Chain) Head() *Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocks[len(c.blocks)-1]
}

// Finalize moves the safe and finalized tags. Before the first call the node
// answers null for both.
func (c *Chain) Finalize(safe, finalized uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.safe, c.finalized = safe, finalized
}

// build makes the block that follows the newest one. The salt makes the blocks after a fork differ from those that they
// replace, also where they hold the same. c.mu is held.
func (c *Chain) build(txs [][]types.Log) *Block {
	var salt [8]byte
	binary.BigEndian.PutUint64(salt[:], c.salt)
	h := &types.Header{
		Number: new(big.Int).SetUint64(c.opts.Genesis), Time: c.opts.Start, Extra: salt[:],
		Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(7),
		UncleHash: types.EmptyUncleHash, Root: types.EmptyRootHash,
	}
	if n := len(c.blocks); n > 0 {
		parent := c.blocks[n-1].Header
		h.ParentHash = c.blocks[n-1].hash
		h.Number.Add(parent.Number, common.Big1)
		h.Time = parent.Time + c.opts.BlockTime
	}
	b := &Block{Header: h}
	for i, logs := range txs {
		c.addTx(b, i, logs)
	}
	seal(b, c.opts.Bloomless)
	return b
}

// addTx appends a transaction whose hash depends on its logs only as far as two
// siblings may share it: the same content at the same place is the same tx.
func (c *Chain) addTx(b *Block, i int, logs []types.Log) {
	content := crypto.NewKeccakState()
	for _, l := range logs {
		content.Write(l.Data)
		for _, t := range l.Topics {
			content.Write(t[:])
		}
	}
	to := c.Identity
	tx := types.NewTx(&types.LegacyTx{Nonce: b.Number(), To: &to, Gas: uint64(21_000 + i), GasPrice: big.NewInt(7),
		Value: new(big.Int), Data: content.Sum(nil), V: big.NewInt(27), R: common.Big1, S: common.Big1})
	r := &types.Receipt{Status: types.ReceiptStatusSuccessful, TxHash: tx.Hash(), GasUsed: 21_000,
		CumulativeGasUsed: uint64(i+1) * 21_000, TransactionIndex: uint(i)}
	for _, l := range logs {
		kept := l
		r.Logs = append(r.Logs, &kept)
	}
	r.Bloom = types.CreateBloom(r)
	b.Txs = append(b.Txs, tx)
	b.Receipts = append(b.Receipts, r)
}

// seal fills the roots, after which the hash is known, and stamps the logs.
func seal(b *Block, bloomless bool) {
	b.Header.TxHash = types.DeriveSha(b.Txs, trie.NewStackTrie(nil))
	b.Header.ReceiptHash = types.DeriveSha(b.Receipts, trie.NewStackTrie(nil))
	if !bloomless {
		b.Header.Bloom = types.MergeBloom(b.Receipts)
	}
	b.Header.GasUsed = uint64(len(b.Txs)) * 21_000
	b.hash = b.Header.Hash()
	index := uint(0)
	for i, r := range b.Receipts {
		r.BlockHash, r.BlockNumber = b.hash, b.Header.Number
		for _, l := range r.Logs {
			l.BlockNumber, l.BlockHash, l.BlockTimestamp = b.Number(), b.hash, b.Header.Time
			l.TxHash, l.TxIndex, l.Index, l.Removed = r.TxHash, uint(i), index, false
			index++
		}
	}
}
