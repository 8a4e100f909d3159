package chaindb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

const (
	// minBlockWait is how long a read waits for a block that its caller demands: about a block of most chains, and more
	// than a healthy replica is behind.
	minBlockWait = 2 * time.Second
	// minBlockPoll is the pause between two looks.
	minBlockPoll = 50 * time.Millisecond
)

// demand is the block that an answer must know.
type demand struct {
	chain uint64 // 0: the only chain
	block uint64
}

// demandKey is the context key of a demand.
type demandKey struct{}

// WithMinBlock returns a context whose reads by View know a block of a chain, 0 for the only chain there is. They wait
// two seconds for it, and then are a *repute.BusyError: the index or the replica that is read has not reached it.
func WithMinBlock(ctx context.Context, chain, block uint64) context.Context {
	return context.WithValue(ctx, demandKey{}, &demand{chain, block})
}

// AwaitMinBlock waits until a snapshot knows the block that ctx demands, and returns the error that a read with ctx
// would. It lets a caller who makes many reads wait once. It asks nothing where ctx demands no block.
func AwaitMinBlock(ctx context.Context, db *store.DB) error {
	if demandOf(ctx) == nil {
		return nil
	}
	return View(ctx, db, "wait for a block", func(context.Context, pgx.Tx) error { return nil })
}

// demandOf returns the demand of a context; nil for none.
func demandOf(ctx context.Context) *demand {
	d, _ := ctx.Value(demandKey{}).(*demand)
	return d
}

// behindError is returned for a snapshot that does not know the block.
type behindError struct {
	demand
	newest int64
}

// Error names both blocks.
func (b *behindError) Error() string {
	return fmt.Sprintf("block %d of chain %d is not indexed yet, the newest is %d", b.block, b.chain, b.newest)
}

// busy returns the error for the caller.
func (b *behindError) busy() error {
	return &repute.BusyError{What: b.Error(), Retry: time.Second,
		Hint: "ask again in a second: the index or its replica is behind; or leave minBlock out, for the newest state there is"}
}

// check returns a *behindError where the snapshot of a transaction does not know the block.
func (d *demand) check(ctx context.Context, tx pgx.Tx) error {
	if d == nil {
		return nil
	}
	var newest, chains int64
	var chain uint64
	err := tx.QueryRow(ctx, `
		select chain_id, cursor_block, count(*) over () from chains
		where `+HasRegistries+` and ($1::bigint = 0 or chain_id = $1) limit 1`, int64(d.chain)).Scan(&chain, &newest, &chains)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && d.chain != 0:
		return missingChain(d.chain)
	case errors.Is(err, pgx.ErrNoRows):
		return repute.Invalid("minBlock", "no chain is indexed", "no minBlock")
	case err != nil:
		return err
	case chains > 1:
		return repute.Invalid("minBlock", "names no chain, and several are indexed",
			"chainId:block, e.g. 8453:41663783")
	case newest < int64(d.block):
		return &behindError{demand{chain, d.block}, newest}
	}
	return nil
}
