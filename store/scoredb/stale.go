package scoredb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Values of the column cause of trust_stale: an event, which is urgent, or a run.
const (
	CauseEvent = 0
	causeRun   = 1
)

// MarksChannel is the channel of notifications of new marks. The payload is the id of the chain in decimal.
const MarksChannel = "trust_marks"

// markTokens is the ON CONFLICT clause of an insert into trust_stale. It gives the row a new mark and ends its claim,
// so that a process that is scoring the agent does not delete the row when it saves.
const markTokens = `
	on conflict (chain_id, token_id) do update set cause = least(trust_stale.cause, excluded.cause), final =
		trust_stale.final or excluded.final,
		mark = default, claimed = '-infinity'`

// unwaited is SQL that lets a transaction commit without waiting until it is on disk. A crash may lose it: then its
// marks are still there, or its agents are not claimed.
const unwaited = "set_config('synchronous_commit', 'off', true)"

// ResolveMarks takes up to limit marks of a chain away and makes the agents stale whose scores they concern. It
// returns how many there were: fewer than limit when there are no more. Any number of processes may call it. Before
// the chain's first run, whose pass reads all agents, marks have no effect but that of late events: a run whose graph
// was read before them may be stored yet. Scores of rewound blocks stay hidden until they are computed again: see
// query.ScoreOf.
func ResolveMarks(ctx context.Context, db *store.DB, chainID uint64, limit int) (n int, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("resolve marks of chain %d", chainID), func(tx pgx.Tx) error {
		// One statement checks that there is no run and deletes the marks. A run that is stored later reads the changed
		// rows anyway, also when resolveMarks sees it already.
		var first, late, later int64
		var every bool
		var b pgx.Batch
		b.Queue(`
			with m as (
				delete from trust_marks where chain_id = $1 and not exists (select from trust_runs where chain_id = $1)
				and id in (select id from trust_marks where chain_id = $1 order by id limit $2 for update skip locked)
				returning id, late)
			select count(*), coalesce(max(id) filter (where late), 0), `+unwaited+` from m`, chainID, limit).QueryRow(
			func(row pgx.Row) error { return row.Scan(&first, &late, nil) })
		b.Queue(resolveMarks, chainID, limit, CauseEvent, causeRun).QueryRow(
			func(row pgx.Row) error { return row.Scan(&n, &later, &every) })
		b.Queue(noteLook, chainID)
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		n = min(n+int(first), limit)
		if late = max(late, later); late > 0 { // the newest mark of events that were found late makes another run due
			if _, err := tx.Exec(ctx, `
				insert into cursors (job, chain_id, position) values ('late logs', $1, $2)
				on conflict (job, chain_id, part) do update set position = excluded.position`, chainID, late); err != nil {
				return err
			}
		}
		if every {
			return beginPass(ctx, tx, chainID)
		}
		return nil
	})
	return n, err
}

// resolveMarks deletes marks of a chain with a run and inserts the marked agents into trust_stale. For a mark of an
// owner it leaves out agents without ratings and without a score, because an operator's approval cannot change their
// score. Agents of a range of blocks have the cause run, which is not urgent, because ranges are stored while a chain
// is far behind.
const resolveMarks = `
	with m as materialized (
		delete from trust_marks where chain_id = $1 and exists (select from trust_runs where chain_id = $1) and id in (
			select id from trust_marks where chain_id = $1 order by id limit $2 for update skip locked)
		returning *),
	marked as (
		insert into trust_stale (chain_id, token_id, cause, final)
		select $1, token_id, min(cause), false from (
			select token_id, $3::smallint as cause from m where token_id is not null
			union all
			select a.token_id, $3 from m join agents a on (a.chain_id, a.owner) = ($1, m.owner)
			where ` + judgedAgents + ` or exists (
				select from trust_scores s where (s.chain_id, s.token_id) = (a.chain_id, a.token_id))
			union all
			select e.token_id, $4 from m join events e on e.chain_id = $1 and e.block between m.from_block and m.to_block
			where e.token_id is not null) c
		group by token_id order by token_id` + markTokens + `)
	select count(*), coalesce(max(id) filter (where late), 0), coalesce(bool_or(every), false) from m`

// noteLook stores the time at which marks were last resolved and none were left, at most every ten seconds.
const noteLook = `
	insert into cursors as c (job, chain_id, begun)
	select 'marks', $1::bigint, clock_timestamp() where not exists (select from cursors
		where job = 'marks' and chain_id = $1 and part = 0 and begun > clock_timestamp() - interval '10 seconds')
	and not exists (select from trust_marks where chain_id = $1)
	on conflict (job, chain_id, part) do update set begun = excluded.begun`

// StaleAgent is a claimed agent whose score must be computed.
type StaleAgent struct {
	TokenID repute.TokenID
	Mark    int64 // mark of the row when it was claimed; a newer mark keeps the agent stale
	Final   bool  // the final score must be computed too
	Rows    int64 // about how many live ratings the agent has
	Scored  bool  // it has a score, or another agent limits its final score of the run before
	// current is the score in effect when a pass read it, nil for none. final is the final one, nil while it is
	// unknown.
	current *inEffect
	final   *finalInEffect
	// inMemory says that current and final were remembered: see Effects.
	inMemory bool
}

// Remembered reports whether the scores in effect of an agent of a pass are known without reading them: see Effects.
func (a *StaleAgent) Remembered() bool { return a.inMemory }

// ClaimStale claims up to limit stale agents of a chain for ttl, the longest waiting first. With urgent it claims only
// agents with events, otherwise only agents of a run that no pass will still reach. It claims none when run is not the
// chain's newest, because the caller would score with old weights.
func ClaimStale(ctx context.Context, db *store.DB, chainID, run uint64, urgent bool, limit int,
	ttl time.Duration) ([]StaleAgent, error) {
	cause := causeRun
	if urgent {
		cause = CauseEvent
	}
	rows, _ := db.Pool().Query(ctx, `
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
			exists (select from trust_scores c where (c.chain_id, c.token_id) = (s.chain_id, s.token_id))
				or coalesce((select guarded from trust_finals f
					where (f.chain_id, f.token_id) = (s.chain_id, s.token_id) and f.run < $2
					order by run desc limit 1), false), `+unwaited,
		chainID, int64(run), cause, limit, ttl, CauseEvent)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a StaleAgent, err error) {
		return a, row.Scan((*column.TokenNum)(&a.TokenID), &a.Mark, &a.Final, &a.Rows, &a.Scored, nil)
	})
	return list, store.Failed("claim stale agents", err)
}
