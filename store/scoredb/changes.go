package scoredb

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/changedata"
	"repute/store/column"
)

// The change feed shows two scores of an agent, each with changes of its own, so that a reader who keeps the newest
// standing of each mode has what lists show: the provisional one, where it is null the final one, and where both are
// null the one that all agents without ratings have.
//
//   - mode provisional: trust_scores. The standing is null while the row is missing, and while a block that the score
//     follows from is not part of the chain. A rewind therefore writes a change too, instead of retracting earlier ones.
//   - mode final: trust_finals up to the newest closed run. Its changes are written when a run is closed.

// lockScores makes the transactions that write scores of a chain, or hide them, wait for each other. A transaction MUST
// call it before it writes anything: readers of the feed order changes by transaction ids, so the order of the ids must
// be that in which the transactions see each other.
func lockScores(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	_, err := tx.Exec(ctx, scoresLock, int64(chainID))
	return err
}

// scoresLock is the statement of lockScores.
const scoresLock = "select pg_advisory_xact_lock(hashtextextended('scores', $1))"

// BeginRewind is called before a transaction writes anything that will remove blocks of a chain.
func BeginRewind(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	return store.Failed("lock scores", lockScores(ctx, tx, chainID))
}

// HideAbove hides the provisional scores that follow from blocks above ancestor, which the transaction removed, and
// adds a change for each. They stay hidden until they are computed again, even if the same blocks return. BeginRewind
// MUST have been called.
func HideAbove(ctx context.Context, tx pgx.Tx, chainID uint64, ancestor repute.Block) error {
	_, err := tx.Exec(ctx, `
		with hidden as (
			update trust_scores s set block_hash = '' from trust_runs r
			where s.chain_id = $1 and s.block > $2 and (r.chain_id, r.run) = (s.chain_id, s.run)
				and s.block <> r.block and s.block_hash <> ''
			returning s.*, r.epoch)
		insert into changes (chain_id, kind, block, log_index, token_id, data)
		select $1, '`+changedata.KindScore+`', $2, 0, h.token_id, `+changeData(provisional, "h.run", "h.epoch", standing("h"), "null::jsonb",
		"$2::bigint", "$3::bytea", "$4::timestamptz")+`
		from hidden h order by h.token_id`, chainID, ancestor.Number, column.HashBytes(ancestor.Hash),
		column.MaybeTime(ancestor.Time))
	return store.Failed("hide scores of removed blocks", err)
}

// Modes of the changes of scores, as SQL.
const (
	provisional = "'" + changedata.Provisional + "'"
	final       = "'" + changedata.Final + "'"
)

// isShown returns the SQL of whether row s of trust_scores, of run r, is visible. The hash of a hidden row is empty,
// unless it is of the run's own block, which is final.
func isShown(s, r string) string {
	return fmt.Sprintf("(%s.block = %s.block or %[1]s.block_hash <> '')", s, r)
}

// standing returns the SQL of what users see of a row of scores.
func standing(s string) string {
	return fmt.Sprintf(`jsonb_build_object('status', %[1]s.status, 'score', (%[1]s.score / 1000.0)::numeric(9, 3),
		'low', (%[1]s.low / 1000.0)::numeric(9, 3), 'high', (%[1]s.high / 1000.0)::numeric(9, 3), 'tier', %[1]s.tier)`, s)
}

// changeData returns the SQL of the data of a change: see changedata.Score. The arguments are SQL; old and is are
// standings or null.
func changeData(mode, run, epoch, old, is, block, hash, at string) string {
	return fmt.Sprintf(`jsonb_build_object('mode', %s, 'run', %s, 'epoch', %s, 'old', %s, 'new', %s,
		'asOf', jsonb_build_object('block', %s, 'hash', '0x' || encode(%s, 'hex'),
			'time', to_char(%s at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))`, mode, run, epoch, old, is, block, hash, at)
}

// dropCurrent adds a statement to a batch that deletes the newest scores of agents that have none any more. plain are
// the agents that exist and have no ratings: the row of one that is limited by a related agent stays.
func dropCurrent(b *pgx.Batch, chainID uint64, agents []repute.TokenID, plain []bool) {
	b.Queue(`
		with gone as (
			delete from trust_scores s using unnest($2::numeric[], $3::boolean[]) n(token_id, plain)
			where (s.chain_id, s.token_id) = ($1, n.token_id) and not (n.plain and `+limitedBefore+`)
			returning s.*),
		statuses as (select status as old, null::text as new from gone),
		totals as (`+addTotals("statuses")+`)
		insert into changes (chain_id, kind, block, log_index, token_id, data)
		select $1, '`+changedata.KindScore+`', c.cursor_block, 0, g.token_id, `+changeData(provisional, "g.run", "r.epoch", standing("g"),
		"null::jsonb", "c.cursor_block", "c.cursor_hash", "c.cursor_time")+`
		from gone g join trust_runs r on (r.chain_id, r.run) = ($1, g.run) join chains c on c.chain_id = $1
		where `+isShown("g", "r")+` order by g.token_id`, chainID, column.TokenArray(agents), plain)
}

// scoresBefore returns the SQL of the statuses of agents $3 that have a score, and of their standings, null for those
// that are not visible.
func scoresBefore() string {
	return `
	select s.token_id, s.status, case when ` + isShown("s", "r") + ` then ` + standing("s") + ` end as standing
	from trust_scores s left join trust_runs r on (r.chain_id, r.run) = ($1, s.run)
	where s.chain_id = $1 and s.token_id = any($3::numeric[])`
}

// scoresChanged returns the SQL of the rows of trust_scores that a statement's part "written" stored, with the status
// and the standing of each agent before, of its part "before": see scoresBefore. It sorts both together and takes the
// row ahead, because transactions that store scores have no joins but nested loops: see store.PlanByKey. A loop over
// 16,384 agents within one over as many took more than a minute.
func scoresChanged() string {
	return `
	select * from (
		select *, lag(status) over agent as old_status, lag(standing) over agent as old_standing from (
			select false as stored, token_id, status, standing, null::bigint as run, null::bigint as block,
				null::bytea as block_hash, null::timestamptz as block_time from before
			union all
			select true, w.token_id, w.status, case when ` + isShown("w", "r") + ` then ` + standing("w") + ` end, w.run, w.block,
				w.block_hash, w.block_time
			from written w left join trust_runs r on (r.chain_id, r.run) = ($1, w.run)) s
		window agent as (partition by token_id order by stored)) s
	where stored`
}

// tellCurrent returns the SQL, after a statement's part "changed" of scoresChanged, that adds a change for each agent
// whose visible score is now another one.
func tellCurrent() string {
	return `
	insert into changes (chain_id, kind, block, log_index, token_id, data)
	select $1, '` + changedata.KindScore + `', w.block, 0, w.token_id, ` + changeData(provisional, "w.run", "r.epoch", "w.old_standing", "w.standing",
		"w.block", "w.block_hash", "w.block_time") + `
	from changed w join trust_runs r on (r.chain_id, r.run) = ($1, w.run)
	where w.standing is distinct from w.old_standing order by w.token_id`
}

// tellFinals adds a change for each agent whose final score is another one than in the run that was closed before.
func tellFinals(ctx context.Context, tx pgx.Tx, chainID, run uint64) error {
	_, err := tx.Exec(ctx, `
		with last as materialized (
			select coalesce(max(run), 0) as run from trust_runs where chain_id = $1 and closed_at is not null and run < $2),
		shown as (
			select distinct on (f.token_id) f.token_id, f.run, f.status, f.score, f.low, f.high, f.tier from trust_finals f
			where f.chain_id = $1 and f.run > (select run from last) and f.run <= $2 order by f.token_id, f.run desc)
		insert into changes (chain_id, kind, block, log_index, token_id, data)
		select $1, '`+changedata.KindScore+`', r.block, 0, n.token_id, `+changeData(final, "n.run", "r.epoch", "p.standing", standing("n"),
		"r.block", "r.block_hash", "r.block_time")+`
		from shown n join trust_runs r on (r.chain_id, r.run) = ($1, n.run)
		left join lateral (
			select `+standing("p")+` as standing from trust_finals p
			where p.chain_id = $1 and p.token_id = n.token_id and p.run <= (select run from last)
			order by p.run desc limit 1) p on true
		where p.standing is distinct from `+standing("n")+` order by n.token_id`, chainID, int64(run))
	return err
}
