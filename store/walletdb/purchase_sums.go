package walletdb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// PurchaseSums is what was paid by x402, counted as Caps count it: a payment from its signature on, refused ones never.
type PurchaseSums struct {
	Day, Week repute.Micros // in the last 24 hours, and in the last seven days
	Count     int64         // payments of the last seven days
}

// AgentPurchases is what one agent paid.
type AgentPurchases struct {
	Agent string // slug; empty for payments without an agent
	PurchaseSums
}

// SumPurchases returns what all agents paid, and of those that paid in the last seven days the first agents by their
// sum, at most limit.
func SumPurchases(ctx context.Context, db *store.DB, limit int) (all PurchaseSums, agents []AgentPurchases, err error) {
	rows, _ := db.Readers().Query(ctx, `
		with paid as (
			select agent, count(*) as n, sum((request->>'worth')::bigint) as week,
				coalesce(sum((request->>'worth')::bigint) filter (where created_at > now() - interval '1 day'), 0) as day
			from acts where kind = $1 and refused = '' and created_at > now() - interval '7 days' group by agent)
		select sum(day) over ()::bigint, sum(week) over ()::bigint, sum(n) over ()::bigint, agent, day::bigint, week::bigint, n
		from paid order by week desc, agent limit $2`, purchaseKind, limit)
	var a AgentPurchases
	_, err = pgx.ForEachRow(rows, []any{&all.Day, &all.Week, &all.Count, &a.Agent, &a.Day, &a.Week, &a.Count},
		func() error {
			agents = append(agents, a)
			return nil
		})
	return all, agents, store.Failed("sum purchases", err)
}
