package query

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// ReputationParts says what Reputations reads besides the scores without their results.
type ReputationParts struct {
	Summary, Tags, Results, Independence bool
}

// Reputations reads the newest reputation of many agents on one snapshot, with one statement for
// each part (two for Independence). Summaries are of all clients and tags. For an agent that is not
// indexed only Agent and an unknown score are set.
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
	scores, err := scoresOf(ctx, tx, ids, parts.Results)
	if err != nil {
		return nil, err
	}
	var summaries map[store.AgentKey]repute.Summary
	if parts.Summary {
		if summaries, err = summariesOf(ctx, tx, ids); err != nil {
			return nil, err
		}
	}
	var tags map[store.AgentKey]Tagged
	if parts.Tags {
		if tags, err = tagsOf(ctx, tx, latestTotals(), ids, chaindb.Everything); err != nil {
			return nil, err
		}
	}
	var apart map[store.AgentKey]repute.Independence
	if parts.Independence {
		if apart, err = independenceOf(ctx, tx, ids, chaindb.Everything); err != nil {
			return nil, err
		}
	}
	out := make(map[repute.AgentID]Reputation, len(ids))
	for _, id := range ids {
		k := store.KeyOf(id)
		out[id] = Reputation{Agent: id, Summary: summaries[k], Tagged: tags[k], Score: scores[k], Independence: apart[k]}
	}
	return out, nil
}

// summariesOf returns the newest summary of all clients and tags per agent.
func summariesOf(ctx context.Context, tx pgx.Tx, ids []repute.AgentID) (map[store.AgentKey]repute.Summary, error) {
	chains, tokens := store.KeyColumns(ids)
	rows, err := tx.Query(ctx, `
		select k.chain_id, k.token_id, s.decimals, s.n, s.sum
		from `+agentsAsked+`
		cross join lateral (
			select decimals, sum(n)::bigint as n, sum(sum) as sum from agent_sums s
			where s.chain_id = k.chain_id and s.token_id = k.token_id group by decimals) s`, chains, tokens)
	if err != nil {
		return nil, err
	}
	tallies := make(map[store.AgentKey][]repute.Tally, len(ids))
	var k store.AgentKey
	var t repute.Tally
	var sum store.BigNum
	_, err = pgx.ForEachRow(rows, []any{&k.Chain, (*store.TokenNum)(&k.Token), &t.Decimals, &t.Count, &sum}, func() error {
		t.Sum = sum.Int
		tallies[k] = append(tallies[k], t)
		return nil
	})
	out := make(map[store.AgentKey]repute.Summary, len(tallies))
	for _, id := range ids {
		out[store.KeyOf(id)] = repute.Summarize(tallies[store.KeyOf(id)])
	}
	return out, err
}
