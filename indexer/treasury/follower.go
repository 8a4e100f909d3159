package treasury

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/store"
	"repute/store/walletdb"
)

// Source reads a chain. *node.Pool implements it.
type Source interface {
	Heads(ctx context.Context) (node.Heads, error)
	Span(ctx context.Context, q node.Query) (node.Span, error)
	Blocks(ctx context.Context, numbers []uint64) ([]repute.Block, error)
}

// Options tune a Follower. Zero values are replaced by the defaults named.
type Options struct {
	Poll  time.Duration // between looks at the head, 2 s
	Depth uint64        // blocks to finality where the node names no final block, 64
	Range uint64        // final blocks of one query, 2000; fewer for endpoints that refuse so many
	Log   *slog.Logger  // nil: discarded
}

// Follower keeps the events of one treasury up to date. Any number of processes may follow the same
// treasury.
type Follower struct {
	db      *store.DB
	chainID uint64
	address common.Address
	start   uint64
	source  Source
	o       Options
	decoder decoder
	size    uint64
}

// Errors that Step returns when there is nothing to store. They are not failures.
var (
	// ErrNothingNew is returned when everything that the node has is stored.
	ErrNothingNew = errors.New("nothing new")
	// ErrBehind is returned when the head of the node is below the newest stored block.
	ErrBehind = errors.New("the node is behind the index")
)

// linkedRange is how many blocks that may still be replaced are read together.
const linkedRange = 32

// ancestorMost is how many stored blocks are examined for a common ancestor.
const ancestorMost = 4096

// New returns a Follower of a treasury from a block on, which is at or before its
// deployment.
func New(db *store.DB, chainID uint64, address common.Address, start uint64, source Source, o Options) *Follower {
	o.Poll, o.Depth, o.Range = cmp.Or(o.Poll, 2*time.Second), cmp.Or(o.Depth, 64), cmp.Or(o.Range, 2000)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Follower{db: db, chainID: chainID, address: address, start: max(start, 1), source: source, o: o,
		decoder: newDecoder(), size: o.Range}
}

// Run follows until ctx ends, which is no error.
func (f *Follower) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.Step(ctx)
		switch {
		case err == nil || errors.Is(err, repute.ErrReorged) || errors.Is(err, repute.ErrFenced):
			continue
		case errors.Is(err, ErrNothingNew) || errors.Is(err, ErrBehind) || ctx.Err() != nil:
		default:
			f.o.Log.Warn("treasury: will look again", "chain", f.chainID, "treasury", f.address, "error", err)
		}
		repute.Pause(ctx, f.o.Poll)
	}
	return nil
}

// Step stores the next range of blocks. ErrNothingNew and ErrBehind are no failures,
// repute.ErrReorged means that blocks were replaced, repute.ErrFenced that another process stored them
// first, repute.ErrFinalized that final blocks were replaced, which needs an operator.
func (f *Follower) Step(ctx context.Context) error {
	t, err := walletdb.ReadTreasury(ctx, f.db, f.chainID, f.address)
	if errors.Is(err, repute.ErrNotFound) || err == nil && t.Start > f.start {
		t, err = walletdb.AddTreasury(ctx, f.db, f.chainID, f.address, f.start)
	}
	if err != nil {
		return err
	}
	heads, err := f.heads(ctx)
	if err != nil {
		return err
	}
	if heads.Latest.Number < t.Cursor.Number {
		return ErrBehind
	}
	if (t.Cursor.Hash != common.Hash{}) {
		if same, err := f.onChain(ctx, t.Cursor); err != nil {
			return err
		} else if !same {
			return f.reorg(ctx, &t, heads)
		}
	}
	if heads.Latest.Number == t.Cursor.Number {
		if heads.Finalized > t.Finalized { // finality advances without new blocks too
			if err := walletdb.SaveTreasury(ctx, f.db, f.batch(t.Cursor, t.Cursor, heads)); err != nil {
				return err
			}
		}
		return ErrNothingNew
	}
	b, err := f.next(ctx, t.Cursor, heads)
	if err != nil {
		return err
	}
	return walletdb.SaveTreasury(ctx, f.db, b)
}

// heads returns the heads of the chain, with a finalized block Depth blocks below the head where the node
// names none.
func (f *Follower) heads(ctx context.Context) (node.Heads, error) {
	h, err := f.source.Heads(ctx)
	if err != nil {
		return h, err
	}
	if h.ChainID != f.chainID {
		return h, repute.Conflict("the endpoint is of chain %d, not of %d: mend the configuration", h.ChainID, f.chainID)
	}
	h = h.Limited()
	if h.Finalized == 0 || h.Finalized == h.Latest.Number {
		h.Finalized = h.Latest.Number - min(h.Latest.Number, f.o.Depth)
	}
	return h, nil
}

// onChain reports whether a stored block is still part of the chain.
func (f *Follower) onChain(ctx context.Context, b repute.Block) (bool, error) {
	theirs, err := f.source.Blocks(ctx, []uint64{b.Number})
	if err != nil {
		return false, err
	}
	return len(theirs) == 1 && theirs[0].Hash == b.Hash, nil
}

// batch returns a step of the cursor without events. The store refuses it unless its cursor is at
// parent.
func (f *Follower) batch(parent, to repute.Block, h node.Heads) walletdb.TreasuryBatch {
	return walletdb.TreasuryBatch{ChainID: f.chainID, Address: f.address, Parent: parent, To: to, Finalized: h.Finalized}
}

// next fetches the range that follows a block. A range holds either final blocks or others, so that the
// last final block is always stored, and above it every block is.
func (f *Follower) next(ctx context.Context, parent repute.Block, h node.Heads) (b walletdb.TreasuryBatch, err error) {
	q := node.Query{From: parent.Number + 1, Addresses: []common.Address{f.address}, Topics: f.decoder.topics}
	if q.From <= h.Finalized {
		q.To = min(q.From+f.size-1, h.Finalized)
	} else {
		q.Linked, q.To = true, min(q.From+linkedRange-1, h.Latest.Number)
	}
	span, err := f.source.Span(ctx, q)
	if err == nil {
		err = span.Check(q)
	}
	if err != nil {
		if !jsonrpc.IsTransient(err) && f.size > 1 {
			f.size /= 2
		}
		return b, fmt.Errorf("blocks %d..%d: %w", q.From, q.To, err)
	}
	f.size = min(f.size*2, f.o.Range)
	if first := span.Headers[0]; (parent.Hash != common.Hash{}) && first.Parent != parent.Hash {
		return b, fmt.Errorf("block %d is not the child of the stored one: %w", first.Number, repute.ErrReorged)
	}
	b = f.batch(parent, span.Headers[len(span.Headers)-1], h)
	return b, f.fill(ctx, &b, &span, q.Linked)
}

// fill adds events, and the headers that must be stored.
func (f *Follower) fill(ctx context.Context, b *walletdb.TreasuryBatch, span *node.Span, all bool) error {
	known := map[uint64]repute.Block{}
	for _, h := range span.Headers {
		known[h.Number] = h
	}
	var unknown []uint64
	for i := range span.Logs {
		if _, ok := known[span.Logs[i].BlockNumber]; !ok {
			unknown = append(unknown, span.Logs[i].BlockNumber)
			known[span.Logs[i].BlockNumber] = repute.Block{}
		}
	}
	headers, err := f.source.Blocks(ctx, unknown)
	if err != nil {
		return err
	}
	for _, h := range headers {
		known[h.Number] = h
	}
	kept := map[uint64]bool{b.To.Number: true}
	for i := range span.Logs {
		l := &span.Logs[i]
		in := known[l.BlockNumber]
		if in.Hash != l.BlockHash {
			return &jsonrpc.AnswerError{What: fmt.Sprintf("block %d has two hashes", l.BlockNumber)}
		}
		kept[in.Number] = true
		b.Events = append(b.Events, f.decoder.event(f.chainID, l, in))
	}
	for number, h := range known {
		if all || kept[number] {
			b.Blocks = append(b.Blocks, h)
		}
	}
	return nil
}

// reorg replaces the blocks that left the chain: what follows the common ancestor is
// fetched first, and only then both are swapped in one transaction.
func (f *Follower) reorg(ctx context.Context, t *walletdb.Treasury, h node.Heads) error {
	ancestor, err := f.ancestor(ctx, t, h.Latest.Number)
	if err != nil {
		return err
	}
	if h.Latest.Number <= ancestor.Number {
		return ErrBehind
	}
	b, err := f.next(ctx, ancestor, h)
	if err != nil {
		return err
	}
	if err := walletdb.RewindTreasury(ctx, f.db, t.Cursor, ancestor, b); err != nil {
		return err
	}
	f.o.Log.Info("treasury: reorganized", "chain", f.chainID, "treasury", f.address, "was", t.Cursor.Number, "ancestor",
		ancestor.Number)
	return fmt.Errorf("rewound from block %d to %d: %w", t.Cursor.Number, ancestor.Number, repute.ErrReorged)
}

// ancestor returns the newest stored block that is on the chain.
func (f *Follower) ancestor(ctx context.Context, t *walletdb.Treasury, head uint64) (repute.Block, error) {
	stored, err := walletdb.TreasuryBlocks(ctx, f.db, f.chainID, f.address, ancestorMost)
	if err != nil {
		return repute.Block{}, err
	}
	stored = slices.DeleteFunc(stored, func(b repute.Block) bool { return b.Number > head })
	for len(stored) > 0 {
		some := stored[:min(len(stored), linkedRange)]
		numbers := make([]uint64, len(some))
		for i, b := range some {
			numbers[i] = b.Number
		}
		theirs, err := f.source.Blocks(ctx, numbers)
		if err != nil {
			return repute.Block{}, err
		}
		for i, b := range theirs {
			if b.Hash == some[i].Hash {
				return b, nil
			}
		}
		stored = stored[len(some):]
	}
	if t.Finalized >= f.start {
		return repute.Block{}, fmt.Errorf("no stored block of treasury %s is on the chain: %w", f.address,
			repute.ErrFinalized)
	}
	return repute.Block{Number: f.start - 1}, nil
}
