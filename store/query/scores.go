package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/scoredb"
)

// ValidScore returns the SQL of whether row s of trust_scores, whose run is r, is valid: its newest
// block is still part of the chain. Without coalesce the planner takes all but one in two hundred rows for
// invalid, and sorts all scores of a chain for one page of a list.
func ValidScore(s, r string) string {
	return fmt.Sprintf(`coalesce(%[1]s.block = %[2]s.block or %[1]s.block_hash = (
	select b.hash from blocks b where (b.chain_id, b.number) = (%[1]s.chain_id, %[1]s.block)), false)`, s, r)
}

// Scored returns the SQL of a row of scores ts with its run tr, of agent a.
func Scored() string {
	return "(ts.chain_id, ts.token_id) = (a.chain_id, a.token_id) and (tr.chain_id, tr.run) = (ts.chain_id, ts.run) and " + ValidScore("ts", "tr")
}

// newestScores returns the statement that reads the newest score of each key of $1 and $2: the
// provisional one; where a reorganization replaced its block, the final one of the last closed run;
// otherwise the score of agents without ratings of the last run. Of the three only the first is read of most agents.
// Results are large, so lists leave them out.
func newestScores(results bool) string {
	columns, final := scoreColumns(readingsNow("k.chain_id", "")), scoreColumns(readingsNow("k.chain_id", isClosed))
	unjudged := "convert_to(r.unjudged, 'UTF8'), r.readings"
	if !results {
		columns, unjudged = scoreNumbers+", ''::bytea, ''", "''::bytea, ''"
		final = columns
	}
	return `
	select s.*, k.chain_id, c.identity
	from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)
	join chains c on c.chain_id = k.chain_id
	cross join lateral (
		with provisional as (
			select ` + columns + `, false as final, s.block, s.block_hash, s.block_time, 1 as rank
			from trust_scores s join trust_runs r using (chain_id, run)
			where (s.chain_id, s.token_id) = (k.chain_id, k.token_id) and ` + ValidScore("s", "r") + `
		), closed as (
			select ` + final + `, true, r.block, r.block_hash, r.block_time, 2
			from trust_finals s join trust_runs r using (chain_id, run)
			where not exists (select from provisional) and (s.chain_id, s.token_id) = (k.chain_id, k.token_id)
				and s.run <= (select max(run) from trust_runs where chain_id = k.chain_id and closed_at is not null)
			order by s.run desc limit 1
		)
		select * from provisional
		union all select * from closed
		union all (
			select k.token_id, 0, r.epoch, r.scorer, r.params, r.tags, r.roots, r.links, r.sources, r.credentials,
				r.file_scales, r.verified_to, r.boundary, ''::bytea,
				'unrated', 0, r.unjudged_low, r.unjudged_high, 0, 0, 0, ` + unjudged + `, false, r.block, r.block_hash, r.block_time, 3
			from trust_runs r where not exists (select from provisional) and not exists (select from closed)
				and r.chain_id = k.chain_id and r.unjudged is not null order by r.run desc limit 1)) s`
}

// queueScores queues what reads the newest score per agent, the unknown score where there is none.
func queueScores(b *pgx.Batch, ids []repute.AgentID, results bool) map[column.AgentKey]repute.Score {
	out := make(map[column.AgentKey]repute.Score, len(ids))
	for _, id := range ids {
		s := scoredb.Unknown()
		s.Agent = id
		out[column.KeyOf(id)] = s
	}
	chains, tokens := column.KeyColumns(ids)
	b.Queue(newestScores(results), chains, tokens).Query(func(rows pgx.Rows) error {
		scores, err := pgx.CollectRows(rows, scanNewest)
		for _, s := range scores {
			out[column.KeyOf(s.Agent)] = s
		}
		return err
	})
	return out
}

// scanNewest reads a row of newestScores.
func scanNewest(row pgx.CollectableRow) (repute.Score, error) {
	var rank int
	var c repute.Chain
	s, err := scanScore(c, &rank, &c.ID, (*column.Address)(&c.Identity))(row)
	s.Agent.ChainID, s.Agent.Registry = c.ID, c.Identity
	return s, err
}

// score returns the subject's stored score.
func score(ctx context.Context, s chaindb.Subject) (repute.Score, error) {
	if s.Block != chaindb.Everything {
		return scoreAt(ctx, s)
	}
	var scores map[column.AgentKey]repute.Score
	err := send(ctx, s.Tx, func(b *pgx.Batch) { scores = queueScores(b, []repute.AgentID{s.ID}, true) })
	return scores[column.KeyOf(s.ID)], err
}

// scoreAt returns the subject's stored score as of a block before the newest, or that of an agent without ratings. A
// score that may have been pruned is unknown, so that other parts of the answer are still returned.
func scoreAt(ctx context.Context, s chaindb.Subject) (out repute.Score, err error) {
	out, err = finalScore(ctx, s)
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return scoredb.ReadUnjudged(ctx, s)
	case errors.Is(err, repute.ErrGone):
		out = scoredb.Unknown()
		out.Agent, out.Pruned = s.ID, true
		return out, nil
	}
	return out, err
}
