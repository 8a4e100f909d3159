package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/scoredb"
)

// ratingsOfClients returns the SQL of the live ratings of the agent in row k as of block $3, in the columns of table
// sums: added up as of now, one by one before. It names $3 in any case, so that both take the same parameters.
func ratingsOfClients(block int64) string {
	if block == chaindb.Everything {
		return `(
	select * from sums where chain_id = k.chain_id and token_id = k.token_id and $3::bigint is not null)`
	}
	return `(
	select client, idx, tag1, tag2, decimals, value, 1::bigint as n, value as sum from feedback
	where chain_id = k.chain_id and token_id = k.token_id and block <= $3 and (revoked_block is null or revoked_block >
		$3))`
}

// agentsAsked is the SQL of relation k: the keys of $1 and $2.
const agentsAsked = `unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)`

// asked returns the parameters of statements over agentsAsked at the subject's block.
func asked(s chaindb.Subject) []any { return askedAt([]repute.AgentID{s.ID}, s.Block) }

// askedAt is asked for several agents at a block.
func askedAt(ids []repute.AgentID, block int64) []any {
	chains, tokens := column.KeyColumns(ids)
	return []any{chains, tokens, block}
}

// queueSummary queues what adds up what getSummary would, with the same filters.
func queueSummary(b *pgx.Batch, s chaindb.Subject, totals ratingTotals, clients []common.Address, tag1,
	tag2 string) *repute.Summary {
	args := asked(s)
	arg := func(v any) int {
		args = append(args, v)
		return len(args)
	}
	from := "lateral " + totals.sums + " s"
	if clients != nil {
		// A join, not any(): a client listed twice counts twice, as on chain.
		from = fmt.Sprintf("unnest($%d::bytea[]) as c(client) join lateral %s s using (client)",
			arg(column.AddressColumn(clients)), ratingsOfClients(s.Block))
	}
	where := "true"
	if tag1 != "" {
		where += fmt.Sprintf(" and tag1 = (select id from tags where hash = $%d)", arg(tagHash(&tag1)))
	}
	if tag2 != "" {
		where += fmt.Sprintf(" and tag2 = (select id from tags where hash = $%d)", arg(tagHash(&tag2)))
	}
	out := new(repute.Summary)
	b.Queue("select decimals, sum(n)::bigint, sum(sum) from "+agentsAsked+" cross join "+from+" where "+where+
		" and $3::bigint is not null group by decimals having sum(n) > 0", args...).Query(func(rows pgx.Rows) error {
		tallies, err := pgx.CollectRows(rows, scanTally)
		*out = repute.Summarize(tallies)
		return err
	})
	return out
}

// scanTally reads count and sum of one group of decimals.
func scanTally(row pgx.CollectableRow) (t repute.Tally, err error) {
	var sum column.BigNum
	err = row.Scan(&t.Decimals, &t.Count, &sum)
	t.Sum = sum.Int
	return t, err
}

// Tagged is the feedback of an agent by tag1.
type Tagged struct {
	Tags  []repute.TagSummary // the hundred with most ratings
	Total int64               // how many there are
}

// queueTags queues what summarizes the live tag1 of each agent that have most ratings, and counts all of them, by
// totals as of a block.
func queueTags(b *pgx.Batch, totals ratingTotals, ids []repute.AgentID, block int64) map[column.AgentKey]Tagged {
	all := make(map[column.AgentKey]Tagged, len(ids))
	b.Queue(`
		select k.chain_id, k.token_id, v.* from `+agentsAsked+`
		cross join lateral (
			with c as materialized (
				select s.tag1, t.value as name, sum(s.n)::bigint as n, count(*) over () as total
				from `+totals.sums+` s join tags t on t.id = s.tag1 group by s.tag1, t.value having sum(s.n) > 0
				order by n desc, t.value limit `+fmt.Sprint(column.MaxTags)+`)`+totals.given+`
			select c.tag1, `+column.HeadOf("c.name")+`, c.n, c.total, v.value, v.decimals, v.n as votes, c.name
			from c cross join lateral `+totals.votes+` v) v
		where $3::bigint is not null
		order by k.chain_id, k.token_id, v.n desc, v.name`, askedAt(ids, block)...).Query(func(rows pgx.Rows) error {
		return collectTags(rows, all)
	})
	return all
}

// collectTags reads rows grouped by agent and tag into all.
func collectTags(rows pgx.Rows, all map[column.AgentKey]Tagged) error {
	var tallies []repute.VoteTally
	var open column.AgentKey // whose tags are read
	finish := func() {
		if tags := all[open].Tags; len(tags) > 0 {
			tags[len(tags)-1].SummarizeTallies(tallies)
		}
		tallies = tallies[:0]
	}
	var k column.AgentKey
	var tag, name []byte
	var id, last, feedback, total, votes int64
	var value column.BigNum
	var decimals uint8
	into := []any{&k.Chain, (*column.TokenNum)(&k.Token), &id, &tag, &feedback, &total, &value, &decimals, &votes,
		&name}
	_, err := pgx.ForEachRow(rows, into, func() error {
		if of := all[k]; k != open || of.Tags == nil || id != last {
			finish()
			open, last = k, id
			t := repute.TagSummary{Count: feedback}
			if t.Tag = column.HeadText(tag, &t.Partial); t.Partial {
				t.Hash = column.Keccak(string(name))
			}
			all[k] = Tagged{append(of.Tags, t), total}
		}
		tallies = append(tallies, repute.VoteTally{Amount: repute.Amount{Value: value.Int, Decimals: decimals},
			Count: votes})
		return nil
	})
	finish()
	return err
}

// queueCounts queues what reads the agent's totals.
func queueCounts(b *pgx.Batch, s chaindb.Subject, totals ratingTotals) *repute.AgentCounts {
	c := new(repute.AgentCounts)
	with := "with a as (select * from agents where chain_id = $1 and token_id = $2 and registered_block <= $3)"
	if s.Block != chaindb.Everything {
		with = agentAt(totals)
	}
	b.Queue(with+" select feedback, revoked, clients, responses, validations from a",
		s.Key()...).QueryRow(func(row pgx.Row) error {
		return row.Scan(&c.Feedback, &c.Revoked, &c.Clients, &c.Responses, &c.Validations)
	})
	return c
}

// checkClients refuses lists of clients that the contract refuses.
func checkClients(clients []common.Address) error {
	if clients != nil && len(clients) == 0 {
		return repute.Invalid("clients", "the list is empty", "name clients, or leave the list out for all of them")
	}
	return nil
}

// Summary returns what the contract's getSummary returns for the clients (nil for all; duplicates
// count again) and tags ("" for any) at a block. Unlike the contract it returns repute.ErrNotFound
// for an agent that does not exist.
func Summary(ctx context.Context, db *store.DB, id repute.AgentID, clients []common.Address, tag1, tag2 string,
	at repute.At) (sum repute.Summary, asOf repute.AsOf, err error) {
	if err := checkClients(clients); err != nil {
		return sum, asOf, err
	}
	err = chaindb.ViewAgent(ctx, db, "summarize feedback", id, at, func(ctx context.Context, s chaindb.Subject) error {
		asOf = s.AsOf
		totals, err := totalsAt(ctx, s)
		if err != nil {
			return err
		}
		var read *repute.Summary
		err = send(ctx, s.Tx, func(b *pgx.Batch) { read = queueSummary(b, s, totals, clients, tag1, tag2) })
		sum = *read
		return err
	})
	return sum, asOf, err
}

// Tags summarizes an agent's feedback per tag1, the empty one included, ordered by number of
// ratings and then by tag: the first hundred. Unit is left empty.
func Tags(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At) (tags []repute.TagSummary,
	asOf repute.AsOf, err error) {
	err = chaindb.ViewAgent(ctx, db, "summarize tags", id, at, func(ctx context.Context, s chaindb.Subject) error {
		asOf = s.AsOf
		totals, err := totalsAt(ctx, s)
		if err != nil {
			return err
		}
		var all map[column.AgentKey]Tagged
		err = send(ctx, s.Tx, func(b *pgx.Batch) { all = queueTags(b, totals, []repute.AgentID{s.ID}, s.Block) })
		tags = all[column.KeyOf(s.ID)].Tags
		return err
	})
	return tags, asOf, err
}

// ReadReputation returns Summary, Tags, the score and the counts of one snapshot.
func ReadReputation(ctx context.Context, db *store.DB, id repute.AgentID, q ReputationQuery) (r Reputation, err error) {
	if err := checkClients(q.Clients); err != nil {
		return r, err
	}
	err = chaindb.View(ctx, db, "read reputation", func(ctx context.Context, tx pgx.Tx) error {
		r, err = readReputation(ctx, tx, id, q)
		return err
	})
	return r, err
}

// readReputation is ReadReputation within the transaction of a snapshot.
func readReputation(ctx context.Context, tx pgx.Tx, id repute.AgentID, q ReputationQuery) (r Reputation, err error) {
	err = chaindb.ForAgent(ctx, tx, id, q.At, func(ctx context.Context, s chaindb.Subject) error {
		r.Agent, r.AsOf = s.ID, s.AsOf
		if q.Run {
			if r.Run, err = scoredb.ClosedRun(ctx, s.Tx, s.ID.ChainID, s.Block); err != nil &&
				!errors.Is(err, repute.ErrNotFound) {
				return err
			}
		}
		return r.read(ctx, s, q)
	})
	return r, err
}

// read reads everything about one agent with one message to the database, but for what depends on a block of the past.
func (r *Reputation) read(ctx context.Context, s chaindb.Subject, q ReputationQuery) error {
	totals, err := totalsAt(ctx, s)
	if err != nil {
		return err
	}
	latest, ids := s.Block == chaindb.Everything, []repute.AgentID{s.ID}
	var tags map[column.AgentKey]Tagged
	var scores map[column.AgentKey]repute.Score
	var apart map[column.AgentKey]repute.Independence
	var summary *repute.Summary
	var counts *repute.AgentCounts
	err = send(ctx, s.Tx, func(b *pgx.Batch) {
		if latest {
			reusePlans(b)
			scores = queueScores(b, ids, true)
		}
		summary, tags = queueSummary(b, s, totals, q.Clients, q.Tag1, q.Tag2), queueTags(b, totals, ids, s.Block)
		counts, apart = queueCounts(b, s, totals), queueIndependence(b, ids, s.Block)
	})
	if err != nil {
		return err
	}
	k := column.KeyOf(s.ID)
	r.Summary, r.Tagged, r.Counts, r.Score, r.Independence = *summary, tags[k], *counts, scores[k], apart[k]
	if !latest {
		r.Score, err = scoreAt(ctx, s)
	}
	return err
}

// send sends the statements that f queues to the database as one message, and reads their answers.
func send(ctx context.Context, tx pgx.Tx, f func(*pgx.Batch)) error {
	var b pgx.Batch
	f(&b)
	return tx.SendBatch(ctx, &b).Close()
}

// reusePlans makes the rest of the transaction use one plan for all parameters of a statement. Planning takes as long
// as reading where a few rows of one agent are read, and their plan is the same for every agent.
func reusePlans(b *pgx.Batch) { b.Queue("set local plan_cache_mode = force_generic_plan") }
