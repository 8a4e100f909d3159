package devnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/node"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
)

// Options configure a Devnet. The zero value is usable.
type Options struct {
	ChainID  uint64 // 0 means 31337
	Seed     string // keys, hence addresses, and block randomness derive from it
	Accounts int    // funded accounts without the faucet; 0 means 256
	Port     int    // of JSON-RPC on 127.0.0.1, HTTP and WebSocket alike; 0 takes a free one

	// Code is runtime code that is there from the first block on, by address: contracts that have
	// the same address on every chain.
	Code map[common.Address][]byte

	// GenesisTime is the time of block 0; zero means an hour ago. Blocks made on
	// demand follow it in steps of BlockTime, so that the same calls give the
	// same hashes.
	GenesisTime time.Time

	// SafeDepth and FinalizedDepth are how many blocks below the head the safe
	// and the finalized block are; 0 means 4 and 16.
	SafeDepth, FinalizedDepth uint64
	// UnsafeForks permits Fork below the finalized block, which no honest chain
	// does.
	UnsafeForks bool
}

// BlockTime separates blocks that are made on demand.
const BlockTime = 2 * time.Second

// withDefaults replaces zero values.
func (o Options) withDefaults() Options {
	o.ChainID, o.Accounts = cmp.Or(o.ChainID, 31337), cmp.Or(o.Accounts, 256)
	o.SafeDepth, o.FinalizedDepth = cmp.Or(o.SafeDepth, 4), cmp.Or(o.FinalizedDepth, 16)
	if o.GenesisTime.IsZero() {
		o.GenesisTime = time.Now().Add(-time.Hour)
	}
	return o
}

// Devnet is a running chain with its registries. Its methods may be used by
// several goroutines.
type Devnet struct {
	opt    Options
	keys   []Account // 0 faucet, 1 deployer, then the others
	node   *node.Node
	eth    *eth.Ethereum
	client *ethclient.Client
	chain  repute.Chain

	// The bindings pack transactions, and views pack calls. They are expensive to make.
	identity   *bindings.IdentityRegistry
	reputation *bindings.ReputationRegistry
	validation *bindings.ValidationRegistry
	views      *contracts.Views

	mu        sync.Mutex    // guards what follows, and makes a block one step
	tip       *types.Header // the next block's parent
	aside     bool          // tip is on a branch that is not published yet
	automatic bool          // a period is set
	stopped   bool          // closed: no more blocks
	forks     uint64        // begun so far; keeps a branch's blocks unlike those they replace

	period chan time.Duration // new periods for the loop
	quit   chan struct{}
	done   chan struct{} // closed when the loop has ended
	closed sync.Once
}

// Start runs a node and deploys the registries. Close it, also when ctx has
// ended.
func Start(ctx context.Context, opt Options) (*Devnet, error) {
	opt = opt.withDefaults()
	keys, err := deriveAccounts(opt.Seed, opt.Accounts+reservedAccounts)
	if err != nil {
		return nil, err
	}
	d := &Devnet{opt: opt, keys: keys, period: make(chan time.Duration), quit: make(chan struct{}),
		done: make(chan struct{}), identity: bindings.NewIdentityRegistry(),
		reputation: bindings.NewReputationRegistry(), validation: bindings.NewValidationRegistry(),
		views: contracts.NewViews()}
	if err := d.startNode(); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	if err := d.deploy(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("deploy registries: %w", err), d.stopNode())
	}
	go d.loop()
	return d, nil
}

// Close stops the node and everything that listens. It may be called twice.
// Afterwards no block can be made.
func (d *Devnet) Close() (err error) {
	d.closed.Do(func() {
		close(d.quit)
		<-d.done
		d.mu.Lock() // lets a block that is being made end well
		defer d.mu.Unlock()
		d.stopped = true
		err = d.stopNode()
	})
	return err
}

// Chain describes the chain to an indexer.
func (d *Devnet) Chain() repute.Chain {
	c := d.chain
	c.Validations = append(c.Validations[:0:0], c.Validations...)
	return c
}

// RPCURL is the HTTP endpoint of JSON-RPC.
func (d *Devnet) RPCURL() string { return d.node.HTTPEndpoint() }

// WSURL is the WebSocket endpoint of JSON-RPC.
func (d *Devnet) WSURL() string { return d.node.WSEndpoint() }

// Client speaks to the node without a network. Close ends it.
func (d *Devnet) Client() *ethclient.Client { return d.client }

// Head is the newest block of the published chain.
func (d *Devnet) Head() repute.Block { return blockOf(d.eth.BlockChain().CurrentBlock()) }

// blockOf is a header as the product's packages take it.
func blockOf(h *types.Header) repute.Block {
	return repute.Block{
		Number: h.Number.Uint64(),
		Hash:   h.Hash(),
		Parent: h.ParentHash,
		Time:   time.Unix(int64(h.Time), 0).UTC(),
	}
}
