package trustdb

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

// Run is one walk over the graph of who vouches for whom on a chain.
type Run struct {
	ChainID uint64
	Run     uint64 // 1, 2, … per chain
	Epoch   uint64
	// Boundary is the epoch's last block. Block is that one where its header is known, else
	// the newest one known up to there: the state is the same. It is zero but for its number
	// when there is none.
	Boundary uint64
	Block    repute.Block
	Scorer   string // version of the engine
	// Hashes of the inputs, which TrustInput gives, and of graph and weights. Validations, the
	// contracts whose answers count, is zero for runs from before it was kept.
	Params, Tags, Roots, Links, Validations, Weights common.Hash
	Identities, Edges                                int
	Started, Closed                                  time.Time // Closed is zero while final scores are missing
	Unjudged                                         Unjudged  // only of a run to be added
	Repaired                                         int64     // of a run to be added: TrustChain.Repaired before its graph was read
}

const selectRun = `select chain_id, run, epoch, boundary, block, block_hash, block_time, scorer, params, tags, roots, links,
	validations, weights, identities, edges, started_at, closed_at from trust_runs `

func scanRun(row pgx.Row) (r Run, err error) {
	var hash, params, tags, roots, links, validations, weights []byte
	var at, closed *time.Time
	err = row.Scan(&r.ChainID, &r.Run, &r.Epoch, &r.Boundary, &r.Block.Number, &hash, &at, &r.Scorer, &params, &tags, &roots, &links,
		&validations, &weights, &r.Identities, &r.Edges, &r.Started, &closed)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, repute.ErrNotFound
	}
	r.Block.Hash, r.Block.Time = common.BytesToHash(hash), store.TimeOf(at)
	r.Params, r.Tags, r.Roots, r.Links = common.BytesToHash(params), common.BytesToHash(tags), common.BytesToHash(roots), common.BytesToHash(links)
	r.Validations = common.BytesToHash(validations)
	r.Weights, r.Started, r.Closed = common.BytesToHash(weights), r.Started.UTC(), store.TimeOf(closed)
	return r, err
}

// ReadRun is a chain's run of that number; 0 means the newest one, closed or not.
// repute.ErrNotFound when there is none.
func ReadRun(ctx context.Context, db *store.DB, chainID, run uint64) (Run, error) {
	r, err := scanRun(db.Readers().QueryRow(ctx, selectRun+`
		where chain_id = $1 and $2::bigint in (0, run) order by run desc limit 1`, chainID, run))
	return r, store.Failed(fmt.Sprintf("trust run of chain %d", chainID), err)
}

// ReadClosedRun is a chain's newest run that was closed: ScoreOf gives its final scores.
// repute.ErrNotFound when there is none.
func ReadClosedRun(ctx context.Context, db *store.DB, chainID uint64) (Run, error) {
	r, err := ClosedRun(ctx, db.Readers(), chainID, chaindb.Everything)
	return r, store.Failed(fmt.Sprintf("closed trust run of chain %d", chainID), err)
}

// ClosedRun is the newest closed run whose boundary is at or before a block.
func ClosedRun(ctx context.Context, from interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, chainID uint64, block int64) (Run, error) {
	return scanRun(from.QueryRow(ctx, selectRun+`
		where chain_id = $1 and closed_at is not null and boundary <= $2 order by run desc limit 1`, chainID, block))
}

// Chain is what the trust engine goes by on a chain.
type Chain struct {
	ChainID   uint64
	Imported  bool
	Cursor    uint64 // newest indexed block
	Finalized uint64 // newest block known to be final, 0 when none is
	Run       uint64 // the newest run, 0 when there is none
	Epoch     uint64 // its length in blocks as SetEpoch stored it, 0 before
	Repaired  int64  // the newest change that says that a log was found late, 0 when a run has followed
	// Validations are the contracts whose answers count now.
	Validations []common.Address
	// Lists is another number after each change of roots or links of any chain. What is read
	// after it is at least as new.
	Lists int64
}

// Chains lists the chains that have an indexed block.
func Chains(ctx context.Context, db *store.DB) ([]Chain, error) {
	rows, err := db.Readers().Query(ctx, `
		select chain_id, imported, cursor_block, finalized_block,
			coalesce((select max(run) from trust_runs r where r.chain_id = c.chain_id), 0),
			coalesce((select repaired from trust_feed f where f.chain_id = c.chain_id), 0), validations, epoch_blocks,
			(select position from cursors where job = 'roots and links')
		from chains c where cursor_block >= start_block order by chain_id`)
	if err != nil {
		return nil, store.Failed("list chains to score", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Chain, err error) {
		var validations [][]byte
		err = row.Scan(&c.ChainID, &c.Imported, &c.Cursor, &c.Finalized, &c.Run, &c.Repaired, &validations, &c.Epoch, &c.Lists)
		c.Validations = addressesOf(validations)
		return c, err
	})
	return list, store.Failed("list chains to score", err)
}

func addressesOf(column [][]byte) []common.Address {
	out := make([]common.Address, len(column))
	for i, a := range column {
		out[i] = common.BytesToAddress(a)
	}
	return out
}

// AllowedValidations are the contracts whose answers count on a chain now. repute.ErrNotFound
// for an unknown chain.
func AllowedValidations(ctx context.Context, db *store.DB, chainID uint64) ([]common.Address, error) {
	var list [][]byte
	err := db.Readers().QueryRow(ctx, "select validations from chains where chain_id = $1", chainID).Scan(&list)
	if errors.Is(err, pgx.ErrNoRows) {
		err = repute.ErrNotFound
	}
	return addressesOf(list), store.Failed(fmt.Sprintf("validation contracts of chain %d", chainID), err)
}

// AddRun stores a chain's next run and begins to make every agent stale that has or
// had ratings: MarkAgents goes on. From the first run on the change feed tells which ones more.
// repute.ErrFenced when another process stored a run of this number.
func AddRun(ctx context.Context, db *store.DB, r Run) error {
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("add trust run of chain %d", r.ChainID), func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, block_time, scorer, params, tags, roots, links, weights, identities, edges, repaired,
				unjudged_low, unjudged_high, unjudged, validations)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, nullif($19, ''), $20) on conflict do nothing`,
			r.ChainID, r.Run, r.Epoch, r.Boundary, r.Block.Number, store.HashBytes(r.Block.Hash), store.MaybeTime(r.Block.Time), r.Scorer,
			r.Params[:], r.Tags[:], r.Roots[:], r.Links[:], r.Weights[:], r.Identities, r.Edges, r.Repaired,
			r.Unjudged.Low, r.Unjudged.High, r.Unjudged.Result, store.HashBytes(r.Validations))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return repute.ErrFenced
		}
		// Whatever is not visible yet to the statement after it will be read from the feed. A
		// position before the oldest change would say that some were lost.
		_, err = tx.Exec(ctx, `
			insert into trust_feed (chain_id, xid, seq)
			select $1, xid, seq from (
				select pg_snapshot_xmin(pg_current_snapshot()) as xid, 0 as seq
				union all (select xid, seq from changes order by xid, seq limit 1)) p
			order by xid desc, seq desc limit 1 on conflict do nothing`, r.ChainID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update trust_feed set repaired = 0 where chain_id = $1 and repaired = $2`, r.ChainID, r.Repaired); err != nil {
			return err
		}
		// Who has claimed agents for an older run can store nothing any more.
		if _, err := tx.Exec(ctx, `update trust_stale set claimed = '-infinity' where chain_id = $1 and claimed > '-infinity'`, r.ChainID); err != nil {
			return err
		}
		return MarkAll(ctx, tx, r.ChainID)
	})
}

// CloseRun notes that a chain's newest run is complete, once every agent has its
// final score. From then on they stay as they are.
func CloseRun(ctx context.Context, db *store.DB, chainID uint64) (closed bool, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("close trust run of chain %d", chainID), func(tx pgx.Tx) error {
		// Who marks agents has the run's row: only a statement that follows sees which.
		if _, err := tx.Exec(ctx, `select from trust_runs where chain_id = $1 and closed_at is null order by run desc limit 1 for update`, chainID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			update trust_runs set closed_at = clock_timestamp()
			where chain_id = $1 and closed_at is null and marked is null and run = (select max(run) from trust_runs where chain_id = $1)
			and not exists (select from trust_stale where chain_id = $1 and final)
			and not exists (select from trust_follow where chain_id = $1 and final)`, chainID)
		closed = err == nil && tag.RowsAffected() > 0
		return err
	})
	return closed, err
}

// State tells how far the scores of a chain are.
type State struct {
	Run              // the newest
	Stale  int64     // agents whose scores must be looked at; no more than 100,000 are counted
	Oldest time.Time // since when the first of them waits for it, zero without
}

// ReadStates lists the chains that have scores, or wait for them, by id.
func ReadStates(ctx context.Context, db *store.DB) (out []State, err error) {
	err = chaindb.View(ctx, db, "state of scores", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, selectRun+`where (chain_id, run) in (select chain_id, max(run) from trust_runs group by chain_id) order by chain_id`)
		if err != nil {
			return err
		}
		runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Run, error) { return scanRun(row) })
		if err != nil {
			return err
		}
		for _, r := range runs {
			s := State{Run: r}
			var oldest *time.Time
			if err := tx.QueryRow(ctx, `
				select (select count(*) from (select from trust_stale where chain_id = $1 limit 100000) s), least(
					(select since from trust_stale where chain_id = $1 and turn = $2 order by since limit 1),
					(select since from trust_stale where chain_id = $1 and turn = $3 order by since limit 1))`, r.ChainID, TurnEvent, turnRun).Scan(&s.Stale, &oldest); err != nil {
				return err
			}
			s.Oldest = store.TimeOf(oldest)
			out = append(out, s)
		}
		return nil
	})
	return out, err
}
