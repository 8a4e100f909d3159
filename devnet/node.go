package devnet

import (
	"context"
	"errors"
	"maps"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

// blockGas leaves room for hundreds of transactions in a block and keeps the
// base fee falling.
const blockGas = 1_000_000_000

// startNode assembles what ethclient/simulated assembles, but keeps hold of the
// parts: the endpoints, the chain and the builder. Blocks are inserted directly
// instead of through the simulated beacon, which shortens the visible chain
// before it forks, finalizes by its own rule and knows only wall-clock time.
func (d *Devnet) startNode() (err error) {
	if d.node, err = node.New(d.nodeConfig()); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.node.Close())
		}
	}()
	if d.eth, err = eth.New(d.node, d.ethConfig()); err != nil {
		return err
	}
	d.node.RegisterAPIs([]rpc.API{{
		Namespace: "eth",
		Service:   filters.NewFilterAPI(filters.NewFilterSystem(d.eth.APIBackend, filters.Config{})),
	}, {Namespace: "devnet", Service: &control{d}}})
	if err = d.node.Start(); err != nil {
		return err
	}
	d.eth.SetSynced() // there are no peers to sync with; otherwise the pool refuses transactions
	d.client = ethclient.NewClient(d.node.Attach())
	d.tip = d.eth.BlockChain().CurrentBlock()
	d.finalize()
	return nil
}

// stopNode ends the node with all its services. Its database is gone with it.
func (d *Devnet) stopNode() error {
	d.client.Close()
	return d.node.Close()
}

// nodeConfig is a node without peers, in memory, that serves HTTP and WebSocket at one port of this machine. Port 0
// takes a free one.
func (d *Devnet) nodeConfig() *node.Config {
	conf := node.DefaultConfig
	conf.DataDir = "" // everything in memory
	conf.P2P = p2p.Config{NoDiscovery: true, NoDial: true}
	conf.HTTPHost, conf.HTTPPort = "127.0.0.1", d.opt.Port
	conf.WSHost, conf.WSPort = conf.HTTPHost, conf.HTTPPort
	conf.HTTPModules = []string{"eth", "net", "web3", "txpool", "debug", "devnet"}
	conf.WSModules = conf.HTTPModules
	return &conf
}

// ethConfig keeps the state and the transactions of every block, because readers ask for the past.
func (d *Devnet) ethConfig() *ethconfig.Config {
	conf := ethconfig.Defaults
	conf.Genesis = d.genesis()
	conf.SyncMode = ethconfig.FullSync
	conf.TxPool.NoLocals = true
	conf.TxPool.PriceLimit = 1
	conf.Miner.GasCeil = blockGas
	conf.Miner.GasPrice = big.NewInt(1)
	conf.StateScheme = rawdb.HashScheme // the other scheme forgets after 128 blocks
	conf.NoPruning = true
	conf.TransactionHistory = 0 // look up transactions of the whole chain
	conf.LogNoHistory = true    // search blocks: an index would lag behind the head
	conf.SnapshotCache = 0
	conf.TrieCleanCache, conf.TrieDirtyCache, conf.DatabaseCache = 32, 32, 32
	return &conf
}

// genesis activates every fork of today's mainnet.
func (d *Devnet) genesis() *core.Genesis {
	rules := *params.MergedTestChainConfig
	rules.ChainID = new(big.Int).SetUint64(d.opt.ChainID)
	alloc := core.SystemContractAllocs()
	maps.Copy(alloc, allocation(d.keys))
	for at, code := range d.opt.Code {
		alloc[at] = types.Account{Balance: new(big.Int), Code: code}
	}
	return &core.Genesis{
		Config:     &rules,
		Timestamp:  uint64(d.opt.GenesisTime.Truncate(time.Second).Unix()),
		GasLimit:   blockGas,
		BaseFee:    big.NewInt(params.GWei),
		Difficulty: new(big.Int),
		Alloc:      alloc,
	}
}

// control has the methods that the node serves beside those of Ethereum, for programs in other languages that test what
// follows the chain.
type control struct{ d *Devnet }

// Forget serves devnet_forget: see Devnet.Forget.
func (c *control) Forget(ctx context.Context, depth, n int) error { return c.d.Forget(ctx, depth, n) }
