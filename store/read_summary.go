package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
)

// liveFeedback is an agent's live feedback as of block $3, in the columns of
// table sums.
const liveFeedback = `(
	select client, idx, tag1, tag2, decimals, value, 1::bigint as n, value as sum from feedback
	where chain_id = $1 and token_id = $2 and block <= $3 and (revoked_block is null or revoked_block > $3))`

// maintainedSums is the same as of now, already added up. $3 is only named so
// that both take the same parameters.
const maintainedSums = `(
	select * from sums where chain_id = $1 and token_id = $2 and $3::bigint is not null)`

// sums is the relation to add up for the subject's block.
func (s subject) sums() string {
	if s.block == everything {
		return maintainedSums
	}
	return liveFeedback
}

// summary adds up what getSummary would, filters as there.
func (s subject) summary(ctx context.Context, clients []common.Address, tag1, tag2 string) (repute.Summary, error) {
	args := s.key()
	arg := func(v any) int {
		args = append(args, v)
		return len(args)
	}
	from := s.sums() + " s"
	if clients != nil {
		// A join, not any(): a client listed twice counts twice, as on chain.
		from = fmt.Sprintf("unnest($%d::bytea[]) as k(client) join %s using (client)", arg(addressColumn(clients)), from)
	}
	where := "true"
	if tag1 != "" {
		where += fmt.Sprintf(" and tag1 = (select id from tags where hash = $%d)", arg(tagHash(&tag1)))
	}
	if tag2 != "" {
		where += fmt.Sprintf(" and tag2 = (select id from tags where hash = $%d)", arg(tagHash(&tag2)))
	}
	rows, err := s.tx.Query(ctx, "select decimals, sum(n)::bigint, sum(sum) from "+from+" where "+where+" group by decimals", args...)
	if err != nil {
		return repute.Summary{}, err
	}
	tallies, err := pgx.CollectRows(rows, scanTally)
	return repute.Summarize(tallies), err
}

func scanTally(row pgx.CollectableRow) (t repute.Tally, err error) {
	var sum bigNum
	err = row.Scan(&t.Decimals, &t.Count, &sum)
	t.Sum = sum.Int
	return t, err
}

// tags summarises the live tag1 with most ratings, and counts all of them. At the
// latest block the votes are kept; before it they are each client's newest live
// rating.
func (s subject) tags(ctx context.Context) ([]repute.TagSummary, int64, error) {
	votes := "(select tag1, value, decimals from votes where chain_id = $1 and token_id = $2)"
	if s.block != everything {
		votes = "(select distinct on (tag1, client) tag1, value, decimals from " + liveFeedback + " l order by tag1, client, idx desc)"
	}
	rows, err := s.tx.Query(ctx, `
		with c as materialized (
			select s.tag1, sum(s.n)::bigint as n, count(*) over () as total
			from `+s.sums()+` s join tags t on t.id = s.tag1 group by s.tag1, t.value
			order by n desc, t.value limit `+fmt.Sprint(maxTags)+`)
		select c.tag1, `+headOf("t.value", maxListed)+`, c.n, c.total, v.value, v.decimals, v.n
		from (select tag1, value, decimals, count(*) as n from `+votes+` v
			where tag1 in (select tag1 from c) group by tag1, value, decimals) v
		join c using (tag1)
		join tags t on t.id = v.tag1
		order by c.n desc, t.value`, s.key()...)
	if err != nil {
		return nil, 0, err
	}
	return collectTags(rows)
}

// collectTags reads rows grouped by tag.
func collectTags(rows pgx.Rows) (out []repute.TagSummary, total int64, err error) {
	out = []repute.TagSummary{}
	var tallies []repute.VoteTally
	finish := func() {
		if len(out) > 0 {
			out[len(out)-1].SummarizeTallies(tallies)
		}
		tallies = tallies[:0]
	}
	var tag []byte
	var id, last, feedback, votes int64
	var value bigNum
	var decimals uint8
	_, err = pgx.ForEachRow(rows, []any{&id, &tag, &feedback, &total, &value, &decimals, &votes}, func() error {
		if len(out) == 0 || id != last {
			finish()
			last = id
			t := repute.TagSummary{Count: feedback}
			t.Tag = headText(tag, &t.Partial)
			out = append(out, t)
		}
		tallies = append(tallies, repute.VoteTally{Amount: repute.Amount{Value: value.Int, Decimals: decimals}, Count: votes})
		return nil
	})
	if err == nil {
		finish()
	}
	return out, total, err
}

// counts are the agent's totals.
func (s subject) counts(ctx context.Context) (c repute.AgentCounts, err error) {
	with := "with a as (select * from agents where chain_id = $1 and token_id = $2 and registered_block <= $3)"
	if s.block != everything {
		with = agentAt()
	}
	err = s.tx.QueryRow(ctx, with+" select feedback, revoked, clients, responses, validations from a", s.key()...).
		Scan(&c.Feedback, &c.Revoked, &c.Clients, &c.Responses, &c.Validations)
	return c, err
}

// checkClients refuses what the contract refuses.
func checkClients(clients []common.Address) error {
	if clients != nil && len(clients) == 0 {
		return repute.Invalid("clients", "the list is empty", "name clients, or leave the list out for all of them")
	}
	return nil
}

// Summary is what the contract's getSummary returns for the clients (nil for
// all; duplicates count again) and tags ("" for any), at a block. Unlike the
// contract it does not answer for an agent that does not exist:
// repute.ErrNotFound.
func (db *DB) Summary(ctx context.Context, id repute.AgentID, clients []common.Address, tag1, tag2 string, at repute.At) (sum repute.Summary, asOf repute.AsOf, err error) {
	if err := checkClients(clients); err != nil {
		return sum, asOf, err
	}
	err = db.viewAgent(ctx, "summarise feedback", id, at, func(ctx context.Context, s subject) error {
		asOf = s.asOf
		sum, err = s.summary(ctx, clients, tag1, tag2)
		return err
	})
	return sum, asOf, err
}

// Tags summarises an agent's feedback per tag1, the empty one included, by
// number of ratings and then by tag: the first hundred. Unit is left empty.
func (db *DB) Tags(ctx context.Context, id repute.AgentID, at repute.At) (tags []repute.TagSummary, asOf repute.AsOf, err error) {
	err = db.viewAgent(ctx, "summarise tags", id, at, func(ctx context.Context, s subject) error {
		asOf = s.asOf
		tags, _, err = s.tags(ctx)
		return err
	})
	return tags, asOf, err
}

// Reputation answers Summary, Tags and the counts from one snapshot.
func (db *DB) Reputation(ctx context.Context, id repute.AgentID, q ReputationQuery) (r Reputation, err error) {
	if err := checkClients(q.Clients); err != nil {
		return r, err
	}
	err = db.viewAgent(ctx, "read reputation", id, q.At, func(ctx context.Context, s subject) error {
		r.Agent, r.AsOf = s.id, s.asOf
		if r.Summary, err = s.summary(ctx, q.Clients, q.Tag1, q.Tag2); err != nil {
			return err
		}
		if r.Tags, r.TagsTotal, err = s.tags(ctx); err != nil {
			return err
		}
		if r.Counts, err = s.counts(ctx); err != nil {
			return err
		}
		if r.Score, err = s.score(ctx); err != nil {
			return err
		}
		if q.Run {
			if r.Run, err = closedRun(ctx, s.tx, s.id.ChainID, s.block); err != nil && !errors.Is(err, repute.ErrNotFound) {
				return err
			}
		}
		r.Independence, err = s.independence(ctx)
		return err
	})
	return r, err
}

// SummariesByAgents loads the latest Summary of all clients and tags. Agents
// without live feedback are absent; repute.Summarize(nil) is theirs.
func (db *DB) SummariesByAgents(ctx context.Context, ids []repute.AgentID) (map[repute.AgentID]repute.Summary, error) {
	chains, tokens := keyColumns(ids)
	tallies := make(map[repute.AgentID][]repute.Tally, len(ids))
	err := db.view(ctx, "summarise feedback", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select k.chain_id, c.identity, k.token_id, s.decimals, s.n, s.sum
			from unnest($1::bigint[], $2::numeric[]) as k(chain_id, token_id)
			join chains c on c.chain_id = k.chain_id
			cross join lateral (
				select decimals, sum(n)::bigint as n, sum(sum) as sum from sums s
				where s.chain_id = k.chain_id and s.token_id = k.token_id group by decimals) s`, chains, tokens)
		if err != nil {
			return err
		}
		var id repute.AgentID
		var identity []byte
		var t repute.Tally
		var sum bigNum
		_, err = pgx.ForEachRow(rows, []any{&id.ChainID, &identity, (*tokenNum)(&id.TokenID), &t.Decimals, &t.Count, &sum}, func() error {
			id.Registry, t.Sum = common.BytesToAddress(identity), sum.Int
			tallies[id] = append(tallies[id], t)
			return nil
		})
		return err
	})
	out := make(map[repute.AgentID]repute.Summary, len(tallies))
	for id, t := range tallies {
		out[id] = repute.Summarize(t)
	}
	return out, err
}
