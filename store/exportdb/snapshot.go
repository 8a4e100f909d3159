package exportdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Snapshot names the state of a chain that an export shows.
type Snapshot struct {
	ChainID  uint64
	Registry common.Address // the Identity Registry
	// Block is a final block. The state is the one after it.
	Block uint64
	// Hash and Time of Block; zero where its header is not stored.
	Hash common.Hash
	Time time.Time
	// Run is the run of the trust engine that scores are of, 0 where no run up to Block is closed.
	Run uint64
}

// Resolve completes the snapshot of a chain at a block, or at the newest final block for nil. run is the run of the
// trust engine, 0 for the newest closed one up to the block. repute.ErrNotFound for an unknown chain; repute.ErrInvalid
// for a block that is not final or not indexed, or a run that is not closed at it; repute.ErrGone where final scores of
// the run were pruned.
func Resolve(ctx context.Context, db *store.DB, chainID uint64, block *uint64, run uint64) (s Snapshot, err error) {
	err = chaindb.View(ctx, db, "find the block of an export", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.AskedChains(ctx, tx, []uint64{chainID})
		if err != nil {
			return err
		}
		s.ChainID, s.Registry = chainID, chains[0].Identity
		if s.Block, err = finalBlock(chains[0], block); err != nil {
			return err
		}
		header, _, err := chaindb.ReadHeader(ctx, tx, chainID, int64(s.Block))
		if err != nil {
			return err
		}
		s.Hash, s.Time = header.Hash, header.Time
		s.Run, err = closedRun(ctx, tx, s, run)
		return err
	})
	return s, err
}

// finalBlock returns the block that is asked for, or the newest final one. All blocks of an imported chain are final.
func finalBlock(c *chaindb.ChainView, asked *uint64) (uint64, error) {
	newest := c.Cursor
	if !c.Imported {
		newest = min(newest, c.Finalized)
	}
	if newest < int64(c.StartBlock) {
		return 0, &repute.BusyError{What: fmt.Sprintf("no indexed block of chain %d is final yet", c.ID),
			Retry: time.Minute}
	}
	switch {
	case asked == nil:
		return uint64(newest), nil
	case *asked > uint64(newest):
		return 0, repute.Invalid("block", fmt.Sprintf("%d is not final", *asked),
			fmt.Sprintf("at most %d, the newest final block; none for that one", newest))
	case *asked < c.StartBlock:
		return 0, repute.Invalid("block", fmt.Sprintf("%d is below the first indexed block", *asked),
			fmt.Sprintf("at least %d", c.StartBlock))
	}
	return *asked, nil
}

// closedRun returns the run whose final scores an export shows.
func closedRun(ctx context.Context, tx pgx.Tx, s Snapshot, asked uint64) (run uint64, err error) {
	var pruned bool
	err = tx.QueryRow(ctx, `
		select r.run, exists (
			select from cursors d where d.job = 'pruned finals' and d.chain_id = r.chain_id and d.position > r.run)
		from trust_runs r where r.chain_id = $1 and r.closed_at is not null and r.boundary <= $2 and ($3::bigint = 0 or r.run = $3)
		order by r.run desc limit 1`, int64(s.ChainID), int64(s.Block), int64(asked)).Scan(&run, &pruned)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && asked == 0:
		return 0, nil
	case errors.Is(err, pgx.ErrNoRows):
		return 0, fmt.Errorf("run %d was not closed at block %d, or the scores were computed anew: %w", asked, s.Block,
			repute.ErrGone)
	case err == nil && pruned && asked != 0:
		return 0, fmt.Errorf("final scores of run %d were pruned: %w", asked, repute.ErrGone)
	case err == nil && pruned:
		return 0, nil
	}
	return run, err
}
