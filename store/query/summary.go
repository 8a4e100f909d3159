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
	"repute/store/scoredb"
)

// ratingsOfClients returns the SQL of the live ratings of the agent in row k as of block $3, in the columns of table sums:
// added up as of now, one by one before. It names $3 in any case, so that both take the same parameters.
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
	chains, tokens := store.KeyColumns(ids)
	return []any{chains, tokens, block}
}

// summary adds up what getSummary would, with the same filters.
func summary(ctx context.Context, s chaindb.Subject, totals ratingTotals, clients []common.Address, tag1,
	tag2 string) (repute.Summary, error) {
	args := asked(s)
	arg := func(v any) int {
		args = append(args, v)
		return len(args)
	}
	from := "lateral " + totals.sums + " s"
	if clients != nil {
		// A join, not any(): a client listed twice counts twice, as on chain.
		from = fmt.Sprintf("unnest($%d::bytea[]) as c(client) join lateral %s s using (client)",
			arg(store.AddressColumn(clients)), ratingsOfClients(s.Block))
	}
	where := "true"
	if tag1 != "" {
		where += fmt.Sprintf(" and tag1 = (select id from tags where hash = $%d)", arg(tagHash(&tag1)))
	}
	if tag2 != "" {
		where += fmt.Sprintf(" and tag2 = (select id from tags where hash = $%d)", arg(tagHash(&tag2)))
	}
	rows, err := s.Tx.Query(ctx,
		"select decimals, sum(n)::bigint, sum(sum) from "+agentsAsked+" cross join "+from+" where "+where+
			" and $3::bigint is not null group by decimals having sum(n) > 0", args...)
	if err != nil {
		return repute.Summary{}, err
	}
	tallies, err := pgx.CollectRows(rows, scanTally)
	return repute.Summarize(tallies), err
}

// scanTally reads count and sum of one group of decimals.
func scanTally(row pgx.CollectableRow) (t repute.Tally, err error) {
	var sum store.BigNum
	err = row.Scan(&t.Decimals, &t.Count, &sum)
	t.Sum = sum.Int
	return t, err
}

// Tagged is the feedback of an agent by tag1.
type Tagged struct {
	Tags  []repute.TagSummary // the hundred with most ratings
	Total int64               // how many there are
}

// tagsOf summarizes the live tag1 of each agent that have most ratings, and counts all of them, by totals as of a block.
func tagsOf(ctx context.Context, tx pgx.Tx, totals ratingTotals, ids []repute.AgentID,
	block int64) (map[store.AgentKey]Tagged, error) {
	rows, err := tx.Query(ctx, `
		select k.chain_id, k.token_id, v.* from `+agentsAsked+`
		cross join lateral (
			with c as materialized (
				select s.tag1, t.value as name, sum(s.n)::bigint as n, count(*) over () as total
				from `+totals.sums+` s join tags t on t.id = s.tag1 group by s.tag1, t.value having sum(s.n) > 0
				order by n desc, t.value limit `+fmt.Sprint(store.MaxTags)+`)`+totals.given+`
			select c.tag1, `+store.HeadOf("c.name")+`, c.n, c.total, v.value, v.decimals, v.n as votes, c.name
			from c cross join lateral `+totals.votes+` v) v
		where $3::bigint is not null
		order by k.chain_id, k.token_id, v.n desc, v.name`, askedAt(ids, block)...)
	if err != nil {
		return nil, err
	}
	return collectTags(rows)
}

// collectTags reads rows grouped by agent and tag.
func collectTags(rows pgx.Rows) (map[store.AgentKey]Tagged, error) {
	all := map[store.AgentKey]Tagged{}
	var tallies []repute.VoteTally
	var open store.AgentKey // whose tags are read
	finish := func() {
		if tags := all[open].Tags; len(tags) > 0 {
			tags[len(tags)-1].SummarizeTallies(tallies)
		}
		tallies = tallies[:0]
	}
	var k store.AgentKey
	var tag, name []byte
	var id, last, feedback, total, votes int64
	var value store.BigNum
	var decimals uint8
	into := []any{&k.Chain, (*store.TokenNum)(&k.Token), &id, &tag, &feedback, &total, &value, &decimals, &votes, &name}
	_, err := pgx.ForEachRow(rows, into, func() error {
		if of := all[k]; k != open || of.Tags == nil || id != last {
			finish()
			open, last = k, id
			t := repute.TagSummary{Count: feedback}
			if t.Tag = store.HeadText(tag, &t.Partial); t.Partial {
				t.Hash = store.Keccak(string(name))
			}
			all[k] = Tagged{append(of.Tags, t), total}
		}
		tallies = append(tallies, repute.VoteTally{Amount: repute.Amount{Value: value.Int, Decimals: decimals}, Count: votes})
		return nil
	})
	finish()
	return all, err
}

// counts returns the agent's totals.
func counts(ctx context.Context, s chaindb.Subject, totals ratingTotals) (c repute.AgentCounts, err error) {
	with := "with a as (select * from agents where chain_id = $1 and token_id = $2 and registered_block <= $3)"
	if s.Block != chaindb.Everything {
		with = agentAt(totals)
	}
	err = s.Tx.QueryRow(ctx, with+" select feedback, revoked, clients, responses, validations from a", s.Key()...).
		Scan(&c.Feedback, &c.Revoked, &c.Clients, &c.Responses, &c.Validations)
	return c, err
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
		sum, err = summary(ctx, s, totals, clients, tag1, tag2)
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
		all, err := tagsOf(ctx, s.Tx, totals, []repute.AgentID{s.ID}, s.Block)
		tags = all[store.KeyOf(s.ID)].Tags
		return err
	})
	return tags, asOf, err
}

// ReadReputation returns Summary, Tags and the counts of one snapshot.
func ReadReputation(ctx context.Context, db *store.DB, id repute.AgentID, q ReputationQuery) (r Reputation, err error) {
	if err := checkClients(q.Clients); err != nil {
		return r, err
	}
	err = chaindb.ViewAgent(ctx, db, "read reputation", id, q.At, func(ctx context.Context, s chaindb.Subject) error {
		r.Agent, r.AsOf = s.ID, s.AsOf
		totals, err := totalsAt(ctx, s)
		if err != nil {
			return err
		}
		if r.Summary, err = summary(ctx, s, totals, q.Clients, q.Tag1, q.Tag2); err != nil {
			return err
		}
		tags, err := tagsOf(ctx, s.Tx, totals, []repute.AgentID{s.ID}, s.Block)
		if err != nil {
			return err
		}
		r.Tagged = tags[store.KeyOf(s.ID)]
		if r.Counts, err = counts(ctx, s, totals); err != nil {
			return err
		}
		if r.Score, err = score(ctx, s); err != nil {
			return err
		}
		if q.Run {
			if r.Run, err = scoredb.ClosedRun(ctx, s.Tx, s.ID.ChainID, s.Block); err != nil &&
				!errors.Is(err, repute.ErrNotFound) {
				return err
			}
		}
		apart, err := independenceOf(ctx, s.Tx, []repute.AgentID{s.ID}, s.Block)
		r.Independence = apart[store.KeyOf(s.ID)]
		return err
	})
	return r, err
}
