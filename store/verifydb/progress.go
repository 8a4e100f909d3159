package verifydb

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Standing is how far a chain is indexed, for comparing it with its node.
type Standing struct {
	Cursor uint64
	Head   uint64 // as last seen, 0 when never
	Safe   uint64 // 0 when unknown
	// Pin is the newest finalized block that is stored; its hash is zero when there
	// is none.
	Pin    repute.Block
	Newest repute.Block // the cursor, whether final or not
	Whole  bool         // all blocks from the start to the cursor are covered
	// Bloomless: blooms of the chain's headers lack logs of their blocks.
	Bloomless bool
}

// ReadStanding returns how far a chain is indexed. repute.ErrNotFound for an unknown chain.
func ReadStanding(ctx context.Context, db *store.DB, chainID uint64) (s Standing, err error) {
	doing := fmt.Sprintf("standing of chain %d", chainID)
	err = chaindb.View(ctx, db, doing, func(ctx context.Context, tx pgx.Tx) error {
		var finalized uint64
		err := tx.QueryRow(ctx, `select cursor_block, cursor_hash, head_block, safe_block, finalized_block, exists (
			select from unnest(covered) r where lower(r) <= start_block and upper(r) > cursor_block), bloomless
			from chains where chain_id = $1`, chainID).Scan(&s.Cursor, (*column.Hash)(&s.Newest.Hash), &s.Head,
			&s.Safe, &finalized, &s.Whole, &s.Bloomless)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("chain %d: %w", chainID, repute.ErrNotFound)
		}
		if err != nil {
			return err
		}
		s.Newest.Number = s.Cursor
		s.Pin, err = chaindb.ScanBlock(tx.QueryRow(ctx, `
			select number, hash, parent, time from blocks where chain_id = $1 and number <= $2 and hash <> ''
			order by number desc limit 1`, chainID, min(finalized, s.Cursor)))
		if errors.Is(err, repute.ErrNotFound) {
			return nil
		}
		return err
	})
	return s, err
}

// comparedJob is the prefix of the job of a comparison in table cursors; its name follows.
const comparedJob = "compared "

// Sweep is the position of a comparison of a chain.
type Sweep struct {
	// Pinned is the lowest block that a part was compared at, 0 before the first part.
	Pinned uint64
	// Position is the next token id or block.
	Position uint64
	// Skipped are the kinds of events that a part could not compare.
	Skipped []repute.EventKind
}

// ReadSweep returns the position of a comparison; the zero Sweep when it never ran.
func ReadSweep(ctx context.Context, db *store.DB, chainID uint64, pass string) (s Sweep, err error) {
	err = db.Readers().QueryRow(ctx, `
		select block, position, array(select jsonb_array_elements_text(state->'skipped')::smallint)
		from cursors where job = $2 and chain_id = $1 and part = 0`, chainID, comparedJob+pass).Scan(&s.Pinned, &s.Position, &s.Skipped)
	if errors.Is(err, pgx.ErrNoRows) {
		return Sweep{}, nil
	}
	return s, store.Failed("load sweep", err)
}

// SaveSweep stores the position of a comparison. repute.ErrFenced when the lease is lost.
func SaveSweep(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, pass string, s Sweep) error {
	return db.InLease(ctx, l, "save sweep", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into cursors (job, chain_id, block, position, state)
			values ($2, $1, $3, $4, jsonb_build_object('skipped', coalesce($5::smallint[], '{}')))
			on conflict (job, chain_id, part) do update set block = excluded.block, position = excluded.position, state =
				excluded.state`,
			chainID, comparedJob+pass, s.Pinned, s.Position, s.Skipped)
		return err
	})
}

// SetVerified stores the result of a finished comparison of states: the block at which kinds of
// events were compared. repute.ErrFenced when the lease is lost.
func SetVerified(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, kinds []repute.EventKind,
	block uint64) error {
	return db.InLease(ctx, l, "set verified", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into cursors (job, chain_id, part, block) select 'verified', $1, k, $3 from unnest($2::smallint[]) k
			on conflict (job, chain_id, part) do update set block = excluded.block`, chainID, kinds, block)
		return err
	})
}

// Unverify removes what comparisons found in blocks above n.
func Unverify(ctx context.Context, tx pgx.Tx, chainID, n uint64) error {
	var b pgx.Batch
	b.Queue("update cursors set block = $2 where (job = 'verified' or starts_with(job, $3)) and chain_id = $1 and block > $2", chainID, n, comparedJob)
	cutBlockProofs(&b, chainID, n)
	return store.Failed("take back verification", tx.SendBatch(ctx, &b).Close())
}
