package query

import (
	"context"

	"repute/store/chaindb"
)

// ratingTotals are SQL relations with the totals of the live ratings of an agent as of block $3. The agent is that of
// row k, and for counts that of row a. The three functions below return the same totals in different ways.
type ratingTotals struct {
	// sums has tag1, tag2, decimals, n and sum of all clients together. Several rows may have the same tags and
	// decimals.
	sums string
	// votes has tag1, value, decimals and n of tag c.tag1: how many clients have that as their newest live rating of
	// the tag. It reads the common table expression given, which is empty where none is needed.
	votes, given string
	// counts has feedback, revoked and clients.
	counts string
}

// votesGiven is ratingTotals.votes out of the common table expression.
const votesGiven = `(select value, decimals, n from given where tag1 = c.tag1)`

// latestTotals reads the totals that writers maintain. The offset keeps the planner from reading all votes of the agent
// for each tag, which it takes for one row.
func latestTotals() ratingTotals {
	return ratingTotals{
		sums: `(select tag1, tag2, decimals, n, sum from agent_sums where chain_id = k.chain_id and token_id = k.token_id)`,
		votes: `(select value, decimals, n from agent_votes
			where chain_id = k.chain_id and token_id = k.token_id and tag1 = c.tag1 offset 0)`,
		counts: `(select a.feedback, a.revoked, a.clients)`,
	}
}

// addedTotals adds up all ratings until block $3. The order in votes is that of the primary key, so that only the
// ratings of one client are sorted.
func addedTotals() ratingTotals {
	const live = `block <= $3 and (revoked_block is null or revoked_block > $3)`
	const ofK = `from feedback where chain_id = k.chain_id and token_id = k.token_id and ` + live
	return ratingTotals{
		sums:  `(select tag1, tag2, decimals, 1::bigint as n, value as sum ` + ofK + `)`,
		votes: votesGiven,
		given: `, given as materialized (
			select tag1, value, decimals, count(*) as n from (
				select distinct on (client, tag1) tag1, value, decimals ` + ofK + ` order by client, tag1, idx desc) l
			group by 1, 2, 3)`,
		counts: `(
			select coalesce(sum(live), 0)::bigint as feedback, coalesce(sum(given) - sum(live), 0)::bigint as revoked,
				count(*) filter (where live > 0) as clients
			from (select count(*) as given, count(*) filter (where ` + live + `) as live from feedback
				where chain_id = a.chain_id and token_id = a.token_id and block <= $3 group by client) f)`,
	}
}

// undoneTotals takes out of the maintained totals what came after block $3: the ratings of each client that gave or
// revoked one since then, as they are now, are replaced by those as of the block. Clients without a change since then
// are never read.
func undoneTotals() ratingTotals {
	changed := func(row string) string {
		of := `from feedback where chain_id = ` + row + `.chain_id and token_id = ` + row + `.token_id and `
		return `(
			select f.client, f.idx, f.tag1, f.tag2, f.decimals, f.value, f.revoked_block is null as is_live,
				f.block <= $3 and (f.revoked_block is null or f.revoked_block > $3) as was_live,
				coalesce(f.revoked_block > $3, false) as undone
			from (select client ` + of + `block > $3 union select client ` + of + `revoked_block > $3) c
			cross join lateral (select * ` + of + `client = c.client offset 0) f)`
	}
	const newest = `select distinct on (client, tag1) tag1, value, decimals from changed where `
	const order = ` order by client, tag1, idx desc`
	now := latestTotals()
	return ratingTotals{
		sums: `(
			select * from ` + now.sums + ` s
			union all
			select tag1, tag2, decimals, was_live::int - is_live::int, value * (was_live::int - is_live::int)
			from ` + changed("k") + ` f where was_live <> is_live)`,
		votes: votesGiven,
		given: `, changed as materialized (select * from ` + changed("k") + ` f),
			given as materialized (select tag1, value, decimals, sum(n)::bigint as n from (
				select tag1, value, decimals, n from agent_votes where chain_id = k.chain_id and token_id = k.token_id
				union all select tag1, value, decimals, -1 from (` + newest + `is_live` + order + `) i
				union all select tag1, value, decimals, 1 from (` + newest + `was_live` + order + `) w) v
			group by 1, 2, 3 having sum(n) > 0)`,
		counts: `(
			select a.feedback + coalesce(sum(was) - sum(live), 0)::bigint as feedback,
				a.revoked - coalesce(sum(undone), 0)::bigint as revoked,
				a.clients + count(*) filter (where was > 0) - count(*) filter (where live > 0) as clients
			from (select count(*) filter (where was_live) as was, count(*) filter (where is_live) as live,
				count(*) filter (where undone) as undone from ` + changed("a") + ` f group by client) f)`,
	}
}

// sortMemory lets the newest ratings of some hundred thousand clients be found without files.
const sortMemory = "64MB"

// totalsAt returns the totals as of the subject's block in the form that reads fewer ratings: those until the block, or
// those after it. The memory is set for this transaction alone.
func totalsAt(ctx context.Context, s chaindb.Subject) (ratingTotals, error) {
	if s.Block == chaindb.Everything {
		return latestTotals(), nil
	}
	var mostCameLater bool
	err := s.Tx.QueryRow(ctx, `
		select 2 * (select count(*) from feedback where chain_id = $1 and token_id = $2 and block > $3) > a.feedback + a.revoked
		from agents a cross join set_config('work_mem', $4, true) where a.chain_id = $1 and a.token_id = $2`,
		append(s.Key(), sortMemory)...).Scan(&mostCameLater)
	if mostCameLater {
		return addedTotals(), err
	}
	return undoneTotals(), err
}
