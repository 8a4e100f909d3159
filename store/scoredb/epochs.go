package scoredb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// EpochEnd returns the newest block, up to the last one of an epoch, whose header is stored with
// its time; the state at both is the same. Scores are aged to its time, even where nothing happens
// on the chain. It has no time when the newest event up to there has none, and is zero but for the
// number when there is no block.
func EpochEnd(ctx context.Context, db *store.DB, chainID, boundary uint64) (repute.Block, error) {
	b, err := chaindb.ScanBlock(db.Readers().QueryRow(ctx, `
		with newest as (select block from events where chain_id = $1 and block <= $2 and kind <> $3 order by block desc limit 1)
		select number, hash, parent, time from blocks
		where chain_id = $1 and number <= $2 and number >= coalesce((select block from newest), 0)
			and (time is not null or number = (select block from newest))
		order by number desc limit 1`, chainID, boundary, repute.KindTreasuryEvent))
	if errors.Is(err, repute.ErrNotFound) {
		return repute.Block{Number: boundary}, nil
	}
	return b, store.Failed(fmt.Sprintf("end of an epoch of chain %d", chainID), err)
}

// SetEpoch stores the length of an epoch in blocks. Headers of blocks that end one are kept from
// then on.
func SetEpoch(ctx context.Context, db *store.DB, chainID, blocks uint64) error {
	_, err := db.Pool().Exec(ctx, "update chains set epoch_blocks = $2 where chain_id = $1 and epoch_blocks <> $2",
		chainID, blocks)
	return store.Failed(fmt.Sprintf("set epoch of chain %d", chainID), err)
}

// WantedHeader returns the block that ends the last epoch up to a final block, if its header is not
// stored because it was indexed within a range; 0 when it is stored.
func WantedHeader(ctx context.Context, db *store.DB, chainID, finalized uint64) (number uint64, err error) {
	err = db.Pool().QueryRow(ctx, `
		select c.boundary from (
			select $2::bigint / epoch_blocks * epoch_blocks as boundary, start_block, cursor_block from chains
			where chain_id = $1 and epoch_blocks > 0) c
		where boundary between start_block and cursor_block
		and not exists (select from blocks b where (b.chain_id, b.number) = ($1, c.boundary))`, chainID, finalized).Scan(&number)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return number, store.Failed(fmt.Sprintf("wanted header of chain %d", chainID), err)
}

// KeepHeader stores the header that WantedHeader names, unless one is stored. Its time MUST lie
// between those of the stored blocks around it, because it cannot be taken back and scores are aged
// to it. repute.ErrConflict when it does not, repute.ErrFenced when the lease is lost.
func KeepHeader(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, b repute.Block) error {
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("keep header of chain %d", chainID), func(tx pgx.Tx) error {
		if err := store.HoldLease(ctx, tx, l); err != nil {
			return err
		}
		if _, err := chaindb.HoldChain(ctx, tx, chainID); err != nil {
			return err
		}
		if err := betweenNeighbors(ctx, tx, chainID, b); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			insert into blocks (chain_id, number, hash, parent, time)
			select $1, $2, $3, $4, $5 from chains where chain_id = $1 and $2::bigint between start_block and cursor_block
			on conflict do nothing`, chainID, b.Number, column.HashBytes(b.Hash), column.HashBytes(b.Parent), column.MaybeTime(b.Time))
		return err
	})
}

// betweenNeighbors returns repute.ErrConflict for a block whose time is not between those of the
// blocks with a time before and after it; the newest indexed block is the last one.
func betweenNeighbors(ctx context.Context, tx pgx.Tx, chainID uint64, b repute.Block) error {
	var before, after *time.Time
	err := tx.QueryRow(ctx, `
		select
			(select time from blocks where chain_id = $1 and number < $2 and time is not null order by number desc limit 1),
			least((select time from blocks where chain_id = $1 and number > $2 and time is not null order by number limit 1),
				(select cursor_time from chains where chain_id = $1 and cursor_block >= $2))`, chainID, b.Number).Scan(&before, &after)
	if err != nil {
		return err
	}
	if b.Time.IsZero() || before != nil && b.Time.Before(*before) || after != nil && b.Time.After(*after) {
		return repute.Conflict("block %d is of %s by its header, which is not between its stored neighbors", b.Number,
			b.Time.UTC().Format(time.RFC3339))
	}
	return nil
}
