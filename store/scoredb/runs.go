package scoredb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Run is one computation of weights over a chain's graph of who trusts whom.
type Run struct {
	ChainID uint64
	// Run is its number: 1, 2, … per chain.
	Run uint64
	// Epoch is the number of the epoch.
	Epoch uint64
	// Boundary is the epoch's last block. Block is that one where its header is known, else
	// the newest one known up to there: the state is the same. It is zero but for its number
	// when there is none.
	Boundary uint64
	Block    repute.Block
	// Scorer is the version of the engine.
	Scorer string
	// These are the sha256 of the inputs, which ReadInput returns, and of graph and weights.
	// Validations, the contracts whose answers count, is zero for runs from before it was stored.
	// Sources and Credentials, the policy of sources and what these say of raters, are zero where no source was asked.
	// FileScales, what files of feedback say of scales, is zero where none does. Gateways, the feedback gateways whose
	// ratings belong to their payers, is zero when none was listed.
	Params, Tags, Roots, Links, Validations, Weights, Sources, Credentials, FileScales, Gateways common.Hash
	// Readings say how the reading of each source went, as canonical JSON; "" where none was asked.
	Readings string
	// VerifiedTo is the block up to which every block from the start on was proven when the run began, 0 for none.
	VerifiedTo uint64
	// Identities and Edges are the size of the graph.
	Identities, Edges int
	// Closed is zero while final scores are missing.
	Started, Closed time.Time
	// Unjudged and Repaired are set only for a run to be added; Repaired is Chain.Repaired before
	// the graph was read.
	Unjudged Unjudged
	Repaired int64
	// Coverage is set for a run to be added, without Rated and Thin, which CloseRun finds.
	Coverage repute.Coverage
}

// Verified reports whether every block that the run's final scores follow from was proven when it began.
func (r *Run) Verified() bool { return r.Run > 0 && r.VerifiedTo > 0 && r.Boundary <= r.VerifiedTo }

// Inputs returns the sha256 of every input of the run, without those that it does not have.
func (r *Run) Inputs() []common.Hash {
	all := []common.Hash{r.Params, r.Tags, r.Roots, r.Links, r.Validations, r.Sources, r.Credentials, r.FileScales,
		r.Gateways}
	return slices.DeleteFunc(all, func(h common.Hash) bool { return h == (common.Hash{}) })
}

// selectRun begins the statements that scanRun reads.
const selectRun = `select chain_id, run, epoch, boundary, block, block_hash, block_time, scorer, params, tags, roots, links,
	validations, weights, sources, credentials, file_scales, gateways, readings, verified_to, identities, edges, started_at,
	closed_at
	from trust_runs `

// scanRun reads a row of selectRun.
func scanRun(row pgx.Row) (r Run, err error) {
	var at, closed *time.Time
	err = row.Scan(&r.ChainID, &r.Run, &r.Epoch, &r.Boundary, &r.Block.Number, (*hashColumn)(&r.Block.Hash), &at,
		&r.Scorer, (*hashColumn)(&r.Params), (*hashColumn)(&r.Tags), (*hashColumn)(&r.Roots), (*hashColumn)(&r.Links),
		(*hashColumn)(&r.Validations), (*hashColumn)(&r.Weights), (*hashColumn)(&r.Sources),
		(*hashColumn)(&r.Credentials), (*hashColumn)(&r.FileScales), (*hashColumn)(&r.Gateways), &r.Readings,
		&r.VerifiedTo, &r.Identities, &r.Edges, &r.Started, &closed)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, repute.ErrNotFound
	}
	r.Block.Time, r.Started, r.Closed = column.TimeOf(at), r.Started.UTC(), column.TimeOf(closed)
	return r, err
}

// hashColumn reads a hash from a column that is empty for none.
type hashColumn common.Hash

// ScanBytes implements pgtype.BytesScanner.
func (h *hashColumn) ScanBytes(b []byte) error {
	*h = hashColumn(common.BytesToHash(b))
	return nil
}

// ReadRun returns a chain's run by number; 0 means the newest one, closed or not.
// repute.ErrNotFound when there is none.
func ReadRun(ctx context.Context, db *store.DB, chainID, run uint64) (Run, error) {
	r, err := scanRun(db.Readers().QueryRow(ctx, selectRun+`
		where chain_id = $1 and $2::bigint in (0, run) order by run desc limit 1`, chainID, run))
	return r, store.Failed(fmt.Sprintf("trust run of chain %d", chainID), err)
}

// ReadClosedRun returns a chain's newest closed run, whose final scores query.ScoreOf returns.
// repute.ErrNotFound when there is none.
func ReadClosedRun(ctx context.Context, db *store.DB, chainID uint64) (Run, error) {
	r, err := ClosedRun(ctx, db.Readers(), chainID, chaindb.Everything)
	return r, store.Failed(fmt.Sprintf("closed trust run of chain %d", chainID), err)
}

// ClosedRun returns the newest closed run whose boundary is at or before a block.
func ClosedRun(ctx context.Context, from interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, chainID uint64, block int64) (Run, error) {
	return scanRun(from.QueryRow(ctx, selectRun+`
		where chain_id = $1 and closed_at is not null and boundary <= $2 order by run desc limit 1`, chainID, block))
}

// Chain is the state of a chain that the trust engine acts on.
type Chain struct {
	ChainID uint64
	// Imported says that nothing follows the chain.
	Imported bool
	// Cursor is the newest indexed block.
	Cursor uint64
	// Finalized is the newest final block, 0 when none is known.
	Finalized uint64
	// VerifiedTo is the block up to which every block from the start on is proven, 0 for none; see
	// repute.Completeness.
	VerifiedTo uint64
	// Run is the newest run, 0 when there is none.
	Run uint64
	// Epoch is the length of an epoch in blocks as SetEpoch stored it, 0 before.
	Epoch uint64
	// Repaired is the newest mark that tells of events found late, 0 when a run has followed it.
	Repaired int64
	// Validations are the contracts whose answers count now, Gateways the feedback gateways whose ratings belong to
	// their payers now.
	Validations, Gateways []common.Address
	// Lists changes with each change of roots or links of any chain. Lists that are read after it
	// are at least as new.
	Lists int64
}

// Chains returns the chains that have an indexed block.
func Chains(ctx context.Context, db *store.DB) ([]Chain, error) {
	rows, _ := db.Readers().Query(ctx, `
		select chain_id, imported, cursor_block, finalized_block,
			coalesce((select max(run) from trust_runs r where r.chain_id = c.chain_id), 0),
			coalesce((select position from cursors l where (l.job, l.chain_id, l.part) = ('late logs', c.chain_id, 0)), 0),
			validations, gateways, epoch_blocks, (select position from cursors where job = 'roots and links'), `+chaindb.ProvenTo+`
		from chains c where cursor_block >= start_block and c.`+chaindb.HasRegistries+` order by chain_id`)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Chain, err error) {
		var validations, gateways [][]byte
		err = row.Scan(&c.ChainID, &c.Imported, &c.Cursor, &c.Finalized, &c.Run, &c.Repaired, &validations, &gateways,
			&c.Epoch, &c.Lists, &c.VerifiedTo)
		c.Validations, c.Gateways = addressesOf(validations), addressesOf(gateways)
		return c, err
	})
	return list, store.Failed("list chains to score", err)
}

// addressesOf returns the addresses of a bytea[] column.
func addressesOf(column [][]byte) []common.Address {
	out := make([]common.Address, len(column))
	for i, a := range column {
		out[i] = common.BytesToAddress(a)
	}
	return out
}

// AllowedValidations returns the contracts whose answers count on a chain now. repute.ErrNotFound
// for an unknown chain.
func AllowedValidations(ctx context.Context, db *store.DB, chainID uint64) ([]common.Address, error) {
	return allowed(ctx, db, chainID, "validations")
}

// AllowedGateways returns the feedback gateways of a chain whose ratings belong to their payers now. repute.ErrNotFound
// for an unknown chain.
func AllowedGateways(ctx context.Context, db *store.DB, chainID uint64) ([]common.Address, error) {
	return allowed(ctx, db, chainID, "gateways")
}

// allowed returns an allow-list of a chain, which has a column of its own.
func allowed(ctx context.Context, db *store.DB, chainID uint64, column string) ([]common.Address, error) {
	var list [][]byte
	err := db.Readers().QueryRow(ctx, "select "+column+" from chains where chain_id = $1", chainID).Scan(&list)
	if errors.Is(err, pgx.ErrNoRows) {
		err = repute.ErrNotFound
	}
	return addressesOf(list), store.Failed(fmt.Sprintf("%s of chain %d", column, chainID), err)
}

// AddRun stores a chain's next run and begins the pass that scores all agents for it.
// repute.ErrFenced when another process stored a run with this number.
func AddRun(ctx context.Context, db *store.DB, r Run) error {
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("add trust run of chain %d", r.ChainID), func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, block_time, scorer, params, tags,
				roots, links, weights, identities, edges, repaired,
				unjudged_low, unjudged_high, unjudged, validations, coverage, sources, credentials, readings, verified_to,
				file_scales, gateways)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, nullif($19, ''), $20, $21,
				$22, $23, $24, $25, $26, $27)
			on conflict do nothing`,
			r.ChainID, r.Run, r.Epoch, r.Boundary, r.Block.Number, column.HashBytes(r.Block.Hash),
			column.MaybeTime(r.Block.Time), r.Scorer,
			r.Params[:], r.Tags[:], r.Roots[:], r.Links[:], r.Weights[:], r.Identities, r.Edges, r.Repaired,
			r.Unjudged.Low, r.Unjudged.High, r.Unjudged.Result, column.HashBytes(r.Validations), r.Coverage,
			column.HashBytes(r.Sources), column.HashBytes(r.Credentials), r.Readings, r.VerifiedTo,
			column.HashBytes(r.FileScales), column.HashBytes(r.Gateways))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return repute.ErrFenced
		}
		if _, err := tx.Exec(ctx, `
			update cursors set position = 0 where job = 'late logs' and chain_id = $1 and position = $2`, r.ChainID,
			r.Repaired); err != nil {
			return err
		}
		// Claims for an older run end, because their results would be refused.
		if _, err := tx.Exec(ctx,
			`update trust_stale set claimed = '-infinity' where chain_id = $1 and claimed > '-infinity'`,
			r.ChainID); err != nil {
			return err
		}
		return beginPass(ctx, tx, r.ChainID)
	})
}

// CloseRun closes a chain's newest run once every agent has its final score, and reports whether it
// did. Final scores of a closed run never change. It adds to the change feed which ones differ from those before.
func CloseRun(ctx context.Context, db *store.DB, chainID uint64) (closed bool, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("close trust run of chain %d", chainID), func(tx pgx.Tx) error {
		if err := lockScores(ctx, tx, chainID); err != nil {
			return err
		}
		// SavePass locks the run's row. Only a statement after this one sees what it marked.
		if _, err := tx.Exec(ctx,
			`select from trust_runs where chain_id = $1 and closed_at is null order by run desc limit 1 for update`,
			chainID); err != nil {
			return err
		}
		var run uint64
		err := tx.QueryRow(ctx, `
			update trust_runs set closed_at = clock_timestamp(), rated = `+totalOf(ratedTotal)+`, thin = `+totalOf(thinTotal)+`
			where chain_id = $1 and closed_at is null and scored_to is null and run = (select max(run) from trust_runs where
				chain_id = $1)
			and not exists (select from trust_stale where chain_id = $1 and final)
			and not exists (select from trust_related where chain_id = $1 and final)
			returning run`, chainID).Scan(&run)
		if closed = err == nil; closed {
			return tellFinals(ctx, tx, chainID, run)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return closed, err
}

// State is how far the scores of a chain are.
type State struct {
	Run              // the newest
	Stale  int64     // agents whose scores must be looked at; no more than 100,000 are counted
	Oldest time.Time // since when the first of them waits for it, zero without
}

// ReadStates returns the chains that have scores or wait for them, ordered by id.
func ReadStates(ctx context.Context, db *store.DB) (out []State, err error) {
	err = chaindb.View(ctx, db, "state of scores", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx,
			selectRun+
				`where (chain_id, run) in (select chain_id, max(run) from trust_runs group by chain_id) order by chain_id`)
		runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Run, error) { return scanRun(row) })
		if err != nil {
			return err
		}
		for _, r := range runs {
			s := State{Run: r}
			var oldest *time.Time
			if err := tx.QueryRow(ctx, `
				select (select count(*) from (select from trust_stale where chain_id = $1 limit 100000) s), least(
					(select since from trust_stale where chain_id = $1 and cause = $2 order by since limit 1),
					(select since from trust_stale where chain_id = $1 and cause = $3 order by since limit 1))`, r.ChainID, CauseEvent, causeRun).Scan(&s.Stale, &oldest); err != nil {
				return err
			}
			s.Oldest = column.TimeOf(oldest)
			out = append(out, s)
		}
		return nil
	})
	return out, err
}
