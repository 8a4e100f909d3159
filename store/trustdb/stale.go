package trustdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// Reasons for which a score is stale: an event, which is urgent, or a run.
const (
	CauseEvent = 0
	causeRun   = 1
)

// MarkTokens is the SQL that resolves the conflict of a mark with a stored one. A process that is
// scoring the agent sees the new mark when it saves.
const MarkTokens = `
	on conflict (chain_id, token_id) do update set cause = least(trust_stale.cause, excluded.cause), final =
		trust_stale.final or excluded.final,
		mark = default, claimed = '-infinity'`

// feedRow is the part of a change that scores depend on.
type feedRow struct {
	at    store.ChangeCursor
	kind  string
	block uint64
	token *repute.TokenID
	// owner is set for a change of operators, as 0x….
	owner *string
	// from is set for a backfilled range.
	from *uint64
}

// feedPosition is the cursor in a chain's changes.
type feedPosition struct {
	at store.ChangeCursor
	// Statements after this one see all writes of transactions before that id.
	before uint64
	// oldest is the oldest change that is stored, zero when there is none.
	oldest store.ChangeCursor
	// due says that the time of the last look must be stored.
	due bool
}

// MarkStale reads up to limit changes of a chain and makes the agents stale whose scores they
// may change. It returns how many it read: fewer than limit when there are no more. Any
// number of processes may call it; one at a time reads a chain. Before the chain's first run
// it does nothing.
func MarkStale(ctx context.Context, db *store.DB, chainID uint64, limit int) (n int, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("mark stale agents of chain %d", chainID), func(tx pgx.Tx) error {
		p, err := lockFeed(ctx, tx, chainID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if p.at.Before(p.oldest) && p.oldest.Seq > 1 { // changes were pruned before they were read, perhaps of late logs
			if err := noteRepaired(ctx, tx, chainID, p.oldest.Seq); err != nil {
				return err
			}
			if err := BeginPass(ctx, tx, chainID); err != nil {
				return err
			}
			return moveFeed(ctx, tx, chainID, p.oldest)
		}
		rows, err := readFeed(ctx, tx, chainID, p.at, limit)
		n = len(rows)
		switch {
		case err != nil:
			return err
		case n > 0:
			p.at = rows[n-1].at
			err = markRows(ctx, tx, chainID, rows)
		case !p.due:
			return nil
		default: // the changes of other chains need not be read again
			if p.before > p.at.XID {
				p.at = store.ChangeCursor{XID: p.before}
			}
		}
		if err != nil {
			return err
		}
		return moveFeed(ctx, tx, chainID, p.at)
	})
	return n, err
}

// lockFeed locks a chain's cursor. pgx.ErrNoRows: there is none, or another process has it.
// Pruning removes the oldest changes first: if a change as old as the cursor is left, so are
// all newer ones.
func lockFeed(ctx context.Context, tx pgx.Tx, chainID uint64) (p feedPosition, err error) {
	err = tx.QueryRow(ctx, `
		select f.xid::text::bigint, f.seq, pg_snapshot_xmin(pg_current_snapshot())::text::bigint, f.read_at <
			clock_timestamp() - interval '10 seconds',
			coalesce(c.xid::text::bigint, 0), coalesce(c.seq, 0)
		from trust_feed f left join (select xid, seq from changes order by xid, seq limit 1) c on true
		where f.chain_id = $1 for update of f skip locked`, chainID).Scan(&p.at.XID, &p.at.Seq, &p.before, &p.due, &p.oldest.XID, &p.oldest.Seq)
	return p, err
}

// moveFeed stores the cursor in a chain's changes.
func moveFeed(ctx context.Context, tx pgx.Tx, chainID uint64, at store.ChangeCursor) error {
	_, err := tx.Exec(ctx,
		`update trust_feed set xid = $2::text::xid8, seq = $3, read_at = clock_timestamp() where chain_id = $1`,
		chainID, fmt.Sprint(at.XID), at.Seq)
	return err
}

// noteRepaired makes a run due that computes all final scores again.
func noteRepaired(ctx context.Context, tx pgx.Tx, chainID uint64, seq int64) error {
	_, err := tx.Exec(ctx, `update trust_feed set repaired = $2 where chain_id = $1`, chainID, seq)
	return err
}

// readFeed reads changes of a chain that no older transaction can precede any more.
func readFeed(ctx context.Context, tx pgx.Tx, chainID uint64, after store.ChangeCursor, limit int) ([]feedRow, error) {
	rows, err := tx.Query(ctx, `
		select xid::text::bigint, seq, kind, block, token_id::text, case when kind = $5 then data->>'owner' end,
			case when kind = $6 then (data->>'from')::bigint end
		from changes
		where chain_id = $1 and xid < pg_snapshot_xmin(pg_current_snapshot()) and (xid, seq) > ($2::text::xid8, $3::bigint)
		order by xid, seq limit $4`, chainID, fmt.Sprint(after.XID), after.Seq, limit, store.KindOperator, store.KindBackfilled)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r feedRow, err error) {
		var token *string
		err = row.Scan(&r.at.XID, &r.at.Seq, &r.kind, &r.block, &token, &r.owner, &r.from)
		if err == nil && token != nil {
			r.token = new(repute.TokenID)
			err = r.token.SetFromDecimal(*token)
		}
		return r, err
	})
}

// markRows makes the agents of some changes stale. Rewound scores stay hidden until then: see
// query.ScoreOf. Final scores wait for a run, which a late log makes due.
func markRows(ctx context.Context, tx pgx.Tx, chainID uint64, rows []feedRow) error {
	said := map[repute.TokenID]bool{}
	var b pgx.Batch
	all := false
	for _, r := range rows {
		if r.kind == store.KindRepaired {
			b.Queue(`update trust_feed set repaired = $2 where chain_id = $1`, chainID, r.at.Seq)
		}
		switch {
		case r.token != nil:
			said[*r.token] = true
		case r.kind == store.KindRepaired:
			all = true
		case r.owner != nil:
			b.Queue(`insert into trust_stale (chain_id, token_id, cause, final)
				select $1, token_id, $2, false from agents a where chain_id = $1 and owner = $3
				and (`+judgedAgents+` or exists (select from trust_scores s where (s.chain_id, s.token_id) = (a.chain_id, a.token_id)))
				order by token_id`+MarkTokens, // judged: of one whose first score is being made there is none yet
				chainID, CauseEvent, common.HexToAddress(*r.owner).Bytes())
		case r.from != nil:
			b.Queue(`insert into trust_stale (chain_id, token_id, cause, final)
				select distinct $1::bigint, token_id, $2::smallint, false from events
				where chain_id = $1 and block between $3 and $4 and token_id is not null order by token_id`+MarkTokens,
				chainID, causeRun, *r.from, r.block)
		case r.kind == store.KindRewound:
			b.Queue(`insert into trust_stale (chain_id, token_id, cause, final)
				select $1, token_id, $2, false from trust_scores where chain_id = $1 and block > $3 order by token_id`+MarkTokens,
				chainID, CauseEvent, r.block)
		}
	}
	if len(said) > 0 {
		b.Queue(`insert into trust_stale (chain_id, token_id, cause, final)
			select $1, t, $2, false from unnest($3::numeric[]) t order by t`+MarkTokens, chainID, CauseEvent, store.TokenArray(slices.Collect(maps.Keys(said))))
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil || !all {
		return err
	}
	return BeginPass(ctx, tx, chainID)
}

// StaleAgent is a claimed agent whose score must be computed.
type StaleAgent struct {
	TokenID repute.TokenID
	Mark    int64 // of the moment it was claimed
	Final   bool  // the final score too
	Rows    int64 // live ratings, about
	Scored  bool  // it has a score
}

// ClaimStale claims up to limit stale agents of a chain for ttl, the longest waiting first:
// with urgent only those with events, otherwise only those of a run that a pass is not about to
// reach. It claims none when run is not the chain's newest, because the caller would score by old
// weights.
func ClaimStale(ctx context.Context, db *store.DB, chainID, run uint64, urgent bool, limit int,
	ttl time.Duration) ([]StaleAgent, error) {
	cause := causeRun
	if urgent {
		cause = CauseEvent
	}
	rows, err := db.Pool().Query(ctx, `
		with newest as materialized (
			select run, scored_to from trust_runs where chain_id = $1 order by run desc limit 1),
		c as (
			select token_id from trust_stale
			where chain_id = $1 and cause = $3 and claimed < clock_timestamp() and $2 = (select run from newest)
			and ($3 = $6 or token_id <= coalesce((select scored_to from newest), token_id))
			order by since limit $4 for update skip locked)
		update trust_stale s set claimed = clock_timestamp() + $5
		from c where s.chain_id = $1 and s.token_id = c.token_id
		returning s.token_id, s.mark, s.final,
			coalesce((select feedback from agents a where (a.chain_id, a.token_id) = (s.chain_id, s.token_id)), 0),
			exists (select from trust_scores c where (c.chain_id, c.token_id) = (s.chain_id, s.token_id))`,
		chainID, int64(run), cause, limit, ttl, CauseEvent)
	if err != nil {
		return nil, store.Failed("claim stale agents", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a StaleAgent, err error) {
		return a, row.Scan((*store.TokenNum)(&a.TokenID), &a.Mark, &a.Final, &a.Rows, &a.Scored)
	})
	return list, store.Failed("claim stale agents", err)
}
