package trustdb

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// LogAt is the position of a log on a chain.
type LogAt struct {
	Block    uint64
	LogIndex uint32
}

// ReadTransactions returns the transactions of stored logs of a chain whose newest block was view.
// repute.ErrReorged when view is no longer part of the chain; a view without hash is not checked.
func ReadTransactions(ctx context.Context, db *store.DB, chainID uint64, view repute.Block,
	logs []LogAt) (map[LogAt]common.Hash, error) {
	blocks, indexes := make([]int64, len(logs)), make([]int64, len(logs))
	for i, l := range logs {
		blocks[i], indexes[i] = int64(l.Block), int64(l.LogIndex)
	}
	out := make(map[LogAt]common.Hash, len(logs))
	err := chaindb.View(ctx, db, "read transactions", func(ctx context.Context, tx pgx.Tx) error {
		header, _, err := chaindb.ReadHeader(ctx, tx, chainID, int64(view.Number))
		if err != nil {
			return err
		}
		if err := inChain(ctx, tx, chainID, view, header.Hash); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			select e.block, e.log_index, e.tx_hash
			from unnest($2::bigint[], $3::bigint[]) as k(block, log_index)
			join events e on (e.chain_id, e.block, e.log_index) = ($1, k.block, k.log_index)`, chainID, blocks, indexes)
		var l LogAt
		var hash []byte
		_, err = pgx.ForEachRow(rows, []any{&l.Block, &l.LogIndex, &hash}, func() error {
			out[l] = common.BytesToHash(hash)
			return nil
		})
		return err
	})
	return out, err
}

// inChain returns repute.ErrReorged when a view is no longer part of a chain. The header of a final
// block may have been deleted.
func inChain(ctx context.Context, tx pgx.Tx, chainID uint64, view repute.Block, stored common.Hash) error {
	if view.Hash == (common.Hash{}) || view.Hash == stored {
		return nil
	}
	var final bool
	err := tx.QueryRow(ctx, "select finalized_block >= $2 from chains where chain_id = $1", chainID,
		view.Number).Scan(&final)
	if err == nil && (!final || stored != (common.Hash{})) {
		err = fmt.Errorf("block %d: %w", view.Number, repute.ErrReorged)
	}
	return err
}

// EpochBlock returns the newest block with an event up to the last final multiple of an epoch's
// length; the zero block when there is none. repute.ErrNotFound for an unknown chain.
func EpochBlock(ctx context.Context, db *store.DB, chainID, length uint64) (b repute.Block, err error) {
	err = chaindb.View(ctx, db, "read epoch", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.ReadChains(ctx, tx, []uint64{chainID})
		if err != nil {
			return err
		}
		if len(chains) == 0 {
			return repute.Missing("chain %d", chainID)
		}
		c := chains[0]
		final := min(c.Finalized, c.Cursor)
		if c.Imported {
			final = c.Cursor
		}
		boundary := max(final, 0) / int64(length) * int64(length)
		var hash []byte
		err = tx.QueryRow(ctx,
			`select number, hash, time from blocks where chain_id = $1 and number <= $2 and time is not null
			order by number desc limit 1`, chainID, boundary).Scan(&b.Number, &hash, &b.Time)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		b.Hash, b.Time = common.BytesToHash(hash), b.Time.UTC()
		return err
	})
	return b, err
}
