package query

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// ReputationParts says what Reputations reads besides the scores without their results. It is comparable, so that
// callers may use it as a key. Each part costs a statement.
type ReputationParts struct {
	Summary, Tags, Results, Independence bool
}

// Reputations reads the newest reputation of many agents on one snapshot, with one statement for
// each part and one message to the database for all of them. Summaries are of all clients and tags. For an agent that
// is not indexed only Agent and an unknown score are set.
func Reputations(ctx context.Context, db *store.DB, ids []repute.AgentID,
	parts ReputationParts) (out map[repute.AgentID]Reputation, err error) {
	err = chaindb.View(ctx, db, "read reputations", func(ctx context.Context, tx pgx.Tx) error {
		out, err = ReadReputations(ctx, tx, ids, parts)
		return err
	})
	return out, err
}

// ReadReputations is Reputations within the transaction of a snapshot.
func ReadReputations(ctx context.Context, tx pgx.Tx, ids []repute.AgentID,
	parts ReputationParts) (map[repute.AgentID]Reputation, error) {
	var scores map[column.AgentKey]repute.Score
	var summaries map[column.AgentKey]repute.Summary
	var tags map[column.AgentKey]Tagged
	var apart map[column.AgentKey]repute.Independence
	err := send(ctx, tx, func(b *pgx.Batch) {
		scores = queueScores(b, ids, parts.Results)
		if parts.Summary {
			summaries = queueSummaries(b, ids)
		}
		if parts.Tags {
			tags = queueTags(b, latestTotals(), ids, chaindb.Everything)
		}
		if parts.Independence {
			apart = queueIndependence(b, ids, chaindb.Everything)
		}
	})
	out := make(map[repute.AgentID]Reputation, len(ids))
	for _, id := range ids {
		k := column.KeyOf(id)
		out[id] = Reputation{Agent: id, Summary: summaries[k], Tagged: tags[k], Score: scores[k],
			Independence: apart[k]}
	}
	return out, err
}

// queueSummaries queues what reads the newest summary of all clients and tags per agent. The map has a summary of
// nothing for agents without ratings. It is filled when the batch is sent.
func queueSummaries(b *pgx.Batch, ids []repute.AgentID) map[column.AgentKey]repute.Summary {
	out := make(map[column.AgentKey]repute.Summary, len(ids))
	for _, id := range ids {
		out[column.KeyOf(id)] = repute.Summarize(nil)
	}
	chains, tokens := column.KeyColumns(ids)
	b.Queue(`
		select k.chain_id, k.token_id, s.decimals, s.n, s.sum
		from `+agentsAsked+`
		cross join lateral (
			select decimals, sum(n)::bigint as n, sum(sum) as sum from agent_sums s
			where s.chain_id = k.chain_id and s.token_id = k.token_id group by decimals) s`, chains, tokens).Query(
		func(rows pgx.Rows) error { return collectSummaries(rows, out) })
	return out
}

// collectSummaries reads the rows of queueSummaries.
func collectSummaries(rows pgx.Rows, out map[column.AgentKey]repute.Summary) error {
	tallies := map[column.AgentKey][]repute.Tally{}
	var k column.AgentKey
	var t repute.Tally
	var sum column.BigNum
	_, err := pgx.ForEachRow(rows, []any{&k.Chain, (*column.TokenNum)(&k.Token), &t.Decimals, &t.Count, &sum},
		func() error {
			t.Sum = sum.Int
			tallies[k] = append(tallies[k], t)
			return nil
		})
	for k, of := range tallies {
		out[k] = repute.Summarize(of)
	}
	return err
}
