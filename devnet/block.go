package devnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/miner"

	"repute"
)

// Mine makes a block of the transactions that came in over JSON-RPC, or an empty
// one: at wall-clock time while blocks are automatic, else BlockTime after its
// parent.
func (d *Devnet) Mine(ctx context.Context) (repute.Block, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seal(ctx, d.next(), nil)
}

// MineAt is Mine with the block's time given; it must be after the parent's, in
// whole seconds.
func (d *Devnet) MineAt(ctx context.Context, t time.Time) (repute.Block, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seal(ctx, uint64(t.Unix()), nil)
}

// AdjustTime makes a block that is by later than its parent, in whole seconds, at least one.
func (d *Devnet) AdjustTime(ctx context.Context, by time.Duration) (repute.Block, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seal(ctx, d.tip.Time+uint64(by/time.Second), nil)
}

// SetPeriod makes a block automatically every p at wall-clock time; 0 stops it. A block's time has whole seconds and is
// after its parent's, so that with a shorter period blocks run ahead of the clock. It has no effect after Close.
func (d *Devnet) SetPeriod(p time.Duration) {
	d.mu.Lock()
	d.automatic = p > 0
	d.mu.Unlock()
	select {
	case d.period <- p:
	case <-d.done:
	}
}

// loop makes the automatic blocks until Close. The ticker is stopped until the first period comes; a period that
// replaces another begins anew.
func (d *Devnet) loop() {
	defer close(d.done)
	ticker := time.NewTicker(time.Hour)
	defer ticker.Stop()
	ticker.Stop()
	for {
		select {
		case <-d.quit:
			return
		case p := <-d.period:
			if ticker.Stop(); p > 0 {
				ticker.Reset(p)
			}
		case <-ticker.C:
			_ = d.tick() // the next one may succeed
		}
	}
}

// tick pauses while a branch is being built: its blocks are nobody's to add.
func (d *Devnet) tick() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.aside {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := d.seal(ctx, d.now(), nil)
	return err
}

// next is the time of a block made on demand. d.mu is held.
func (d *Devnet) next() uint64 {
	if d.automatic {
		return d.now()
	}
	return d.tip.Time + uint64(BlockTime/time.Second)
}

// now is the wall-clock time, or the earliest that the parent allows.
func (d *Devnet) now() uint64 { return max(d.tip.Time+1, uint64(time.Now().Unix())) }

// seal makes the block that follows tip: of txs, or of the pool's when there are
// none. On a branch the pool is left alone, because it mirrors the published
// chain. d.mu is held.
func (d *Devnet) seal(ctx context.Context, at uint64, txs types.Transactions) (repute.Block, error) {
	if err := ctx.Err(); err != nil {
		return repute.Block{}, err
	}
	if d.stopped {
		return repute.Block{}, errStopped
	}
	if !d.aside {
		if err := d.eth.TxPool().Sync(); err != nil {
			return repute.Block{}, fmt.Errorf("wait for the pool: %w", err)
		}
	}
	parent := d.tip.Hash()
	entropy := crypto.Keccak256Hash([]byte(d.opt.Seed), parent[:], binaryUint(d.forks))
	args := &miner.BuildPayloadArgs{
		Parent:      parent,
		Timestamp:   at,
		Random:      entropy,
		Withdrawals: types.Withdrawals{},
		BeaconRoot:  &entropy,
		Version:     engine.PayloadV3,
	}
	empty := len(txs) == 0 && d.aside
	block, _, err := d.eth.Miner().BuildTestingPayload(args, txs, empty, nil)
	if err != nil {
		return repute.Block{}, fmt.Errorf("build block %d: %w", d.tip.Number.Uint64()+1, err)
	}
	return d.insert(ctx, block)
}

// insert stores a block behind the tip and, on the published chain, makes it the head. The tip moves last: after a
// failure the next block has the same parent.
func (d *Devnet) insert(ctx context.Context, block *types.Block) (repute.Block, error) {
	if _, err := d.eth.BlockChain().InsertBlockWithoutSetHead(ctx, block, false); err != nil {
		return repute.Block{}, fmt.Errorf("insert block %d: %w", block.NumberU64(), err)
	}
	if !d.aside {
		if err := d.publish(block); err != nil {
			return repute.Block{}, err
		}
	}
	d.tip = block.Header()
	return blockOf(d.tip), nil
}

// publish makes block the head, which reorganizes the chain unless it follows
// the present head.
func (d *Devnet) publish(block *types.Block) error {
	if _, err := d.eth.BlockChain().SetCanonical(block); err != nil {
		return fmt.Errorf("set head %d: %w", block.NumberU64(), err)
	}
	d.finalize()
	return nil
}

// finalize moves the safe and the finalized block along with the head. At the beginning both are block 0.
func (d *Devnet) finalize() {
	chain := d.eth.BlockChain()
	head := chain.CurrentBlock().Number.Uint64()
	chain.SetFinalized(chain.GetHeaderByNumber(head - min(head, d.opt.FinalizedDepth)))
	chain.SetSafe(chain.GetHeaderByNumber(head - min(head, d.opt.SafeDepth)))
}

// Finalized is the newest finalized block.
func (d *Devnet) Finalized() repute.Block {
	return blockOf(d.eth.BlockChain().CurrentFinalBlock())
}

var (
	// errAside is returned where a branch is in the way.
	errAside = errors.New("a branch is being built: publish it first")
	// errStopped is returned for blocks after Close.
	errStopped = errors.New("devnet is closed")
)

// Fork begins a branch depth blocks below the head. Until Publish, every block
// that is made extends the branch, unseen by readers of the chain, and automatic
// blocks pause. Below the finalized block it fails with repute.ErrFinalized
// unless Options.UnsafeForks is set.
func (d *Devnet) Fork(ctx context.Context, depth int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fork(ctx, depth)
}

// fork is Fork. d.mu is held.
func (d *Devnet) fork(ctx context.Context, depth int) error {
	chain := d.eth.BlockChain()
	head := chain.CurrentBlock().Number.Uint64()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case d.aside:
		return errAside
	case depth < 0 || uint64(depth) > head-d.chain.StartBlock:
		return repute.Invalid("depth", "outside the chain", "keep the registries' deployment")
	}
	from := chain.GetHeaderByNumber(head - uint64(depth))
	if !d.opt.UnsafeForks && from.Number.Cmp(chain.CurrentFinalBlock().Number) < 0 {
		return fmt.Errorf("fork at block %d: %w", from.Number, repute.ErrFinalized)
	}
	d.tip, d.aside = from, true
	d.forks++
	return nil
}

// Publish makes the branch the chain; it must be longer than the present one.
// Transactions that are no longer on the chain return to the pool, as they do on
// a public chain, and the next block of the pool includes them; see DropPool.
func (d *Devnet) Publish(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.publishBranch(ctx)
}

// publishBranch is Publish. d.mu is held.
func (d *Devnet) publishBranch(ctx context.Context) error {
	chain := d.eth.BlockChain()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !d.aside:
		return errors.New("no branch to publish")
	case d.tip.Number.Cmp(chain.CurrentBlock().Number) <= 0:
		return fmt.Errorf("branch ends at block %d and the chain at %d: a longer one wins", d.tip.Number,
			chain.CurrentBlock().Number)
	}
	if err := d.publish(chain.GetBlockByHash(d.tip.Hash())); err != nil {
		return err
	}
	d.aside = false
	return nil
}

// Reorg replaces the newest depth blocks by n empty ones, n > depth, in one step.
func (d *Devnet) Reorg(ctx context.Context, depth, n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reorg(ctx, depth, n)
}

// Forget is Reorg after which the transactions of the replaced blocks are not mined again: what they did is undone for
// good.
func (d *Devnet) Forget(ctx context.Context, depth, n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.reorg(ctx, depth, n); err != nil {
		return err
	}
	return d.dropPool()
}

// reorg is Reorg. d.mu is held.
func (d *Devnet) reorg(ctx context.Context, depth, n int) error {
	if n <= depth {
		return repute.Invalid("n", "not longer than what it replaces", "more than depth")
	}
	if err := d.fork(ctx, depth); err != nil {
		return err
	}
	for range n {
		if _, err := d.seal(ctx, d.tip.Time+1, nil); err != nil {
			d.tip, d.aside = d.eth.BlockChain().CurrentBlock(), false
			return err
		}
	}
	return d.publishBranch(ctx)
}

// DropPool forgets transactions that wait for a block, those that a
// reorganization returned included.
func (d *Devnet) DropPool() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dropPool()
}

// dropPool is DropPool. d.mu is held.
func (d *Devnet) dropPool() error {
	if err := d.eth.TxPool().Sync(); err != nil {
		return fmt.Errorf("wait for the pool: %w", err)
	}
	d.eth.TxPool().Clear()
	return nil
}

// nonce is the account's next nonce on tip. d.mu is held.
func (d *Devnet) nonce(a common.Address) (uint64, error) {
	state, err := d.eth.BlockChain().StateAt(d.tip.Root, d.tip.Number, d.tip.Time)
	if err != nil {
		return 0, fmt.Errorf("state of block %d: %w", d.tip.Number, err)
	}
	return state.GetNonce(a), nil
}
