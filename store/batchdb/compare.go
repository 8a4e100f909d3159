package batchdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/manifestdb"
	"repute/store/query"
)

// maxPrices is how many intents of each agent are compared by their prices.
const maxPrices = 20

// Compared is all that is known of one agent for a comparison.
type Compared struct {
	// Agent is as in a list: long texts are cut, and there is no metadata.
	Agent      repute.Agent
	Reputation query.Reputation
	// Manifest is nil without a usable one.
	Manifest *manifestdb.Summary
	// Prices are the first intents of the manifest, in its order.
	Prices []manifestdb.Price
}

// Compare reads agents from one snapshot, in the order of the references. repute.ErrNotFound names the first agent that
// is not indexed.
func Compare(ctx context.Context, db *store.DB, refs []repute.AgentRef, defaultChain uint64) (out []Compared,
	asOf []repute.AsOf, err error) {
	items := make([]Item, len(refs))
	for i := range refs {
		items[i].ID = &refs[i]
	}
	err = chaindb.View(ctx, db, "compare agents", func(ctx context.Context, tx pgx.Tx) error {
		b, err := readBatch(ctx, tx, nil, items, defaultChain)
		if err != nil {
			return err
		}
		for i := range b.Found {
			if b.Found[i].Err != nil {
				return b.Found[i].Err
			}
		}
		asOf = b.AsOf
		out, err = b.compared(ctx, tx, db.Options().SharedHosts)
		return err
	})
	return out, asOf, err
}

// compared reads what a comparison shows besides reputations.
func (b *Batch) compared(ctx context.Context, tx pgx.Tx, shared []string) ([]Compared, error) {
	ids := make([]repute.AgentID, len(b.Found))
	for i, f := range b.Found {
		ids[i] = f.Matches[0].Agent
	}
	agents, err := query.ReadAgents(ctx, tx, ids, false)
	if err != nil {
		return nil, err
	}
	manifests, err := manifestdb.ReadOfAgents(ctx, tx, shared, ids)
	if err != nil {
		return nil, err
	}
	var domains []string
	for _, m := range manifests {
		if m.Named { // the prices of others are not the agent's
			domains = append(domains, m.Domain)
		}
	}
	prices, err := manifestdb.PricesOf(ctx, tx, domains, maxPrices)
	if err != nil {
		return nil, err
	}
	out := make([]Compared, len(ids))
	for i, id := range ids {
		out[i] = Compared{Agent: *agents[column.KeyOf(id)], Reputation: b.Reputations[id]}
		if m, found := manifests[id]; found {
			out[i].Manifest, out[i].Prices = &m, prices[m.Domain]
		}
	}
	return out, nil
}
