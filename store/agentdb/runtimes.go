package agentdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
)

// Runtime is an agent whose log is in the database, as its log tells.
type Runtime struct {
	Agent string // full id
	// Seen is the time of its newest entry.
	Seen time.Time
	// Mode is the newest change of its mode, and Since its time; "normal" and zero where it never changed.
	Mode  string
	Since time.Time
	// Policy is the hash of the signed policy that was stored last; empty for none.
	Policy string
}

// window is how far back runtimes are read: the log is kept longer.
const window = `now() - interval '30 days'`

// Runtimes returns up to most agents with an entry of the last thirty days, the newest first. It reads their whole log
// of that time, so it is for operators.
func Runtimes(ctx context.Context, db *store.DB, most int) ([]Runtime, error) {
	rows, _ := db.Readers().Query(ctx, `
		select a.agent, a.seen, coalesce(substr(m.outcome, 6), 'normal'), m.at, coalesce(p.hash, '')
		from (select agent, max(at) as seen from agent_receipts where at > `+window+`
			group by agent order by seen desc, agent limit $1) a
		left join lateral (select outcome, at from agent_receipts where agent = a.agent and kind = 'event'
			and starts_with(outcome, 'mode ') order by at desc, number desc limit 1) m on true
		left join lateral (select detail->>'hash' as hash from agent_receipts where agent = a.agent and kind = 'event'
			and outcome = '`+policyOutcome+`' order by at desc, number desc limit 1) p on true
		order by a.seen desc, a.agent`, most)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Runtime, err error) {
		var since *time.Time
		err = row.Scan(&r.Agent, &r.Seen, &r.Mode, &since, &r.Policy)
		r.Seen, r.Since = r.Seen.UTC(), column.TimeOf(since)
		return r, err
	})
	return list, store.Failed("list runtimes", err)
}

// Work is what an agent did for one capability in the last thirty days, and what it was paid in one currency.
type Work struct {
	Agent, Capability string
	// Runs are executions, and Failed those of them with a status from 400 to 599. The outcome of an execution is its
	// HTTP status in decimal digits; any other text counts as no failure.
	Runs, Failed int64
	Paid         int64 // executions for which money moved or was promised
	Last         time.Time
	// Revenue is the sum of what paid executions were paid, and Price that of the newest one, in the smallest unit of
	// Currency; "0" without any.
	Revenue, Price string
	Currency       string
	Decimals       uint8
}

// Works returns the work of agents by capability and currency. Free executions have no currency.
func Works(ctx context.Context, db *store.DB, agents []string) ([]Work, error) {
	rows, _ := db.Readers().Query(ctx, `
		select agent, capability, count(*), count(*) filter (where outcome ~ '^[45][0-9][0-9]$'), count(*) filter (where amount > 0),
			max(at), coalesce(sum(amount), 0)::text,
			coalesce((array_agg(amount order by at desc, number desc) filter (where amount > 0))[1], 0)::text, currency, decimals
		from agent_receipts where at > `+window+` and kind = 'execution' and agent = any($1)
		group by agent, capability, currency, decimals order by agent, capability, currency, decimals`, agents)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Work, err error) {
		var decimals int16
		err = row.Scan(&w.Agent, &w.Capability, &w.Runs, &w.Failed, &w.Paid, &w.Last, &w.Revenue, &w.Price, &w.Currency,
			&decimals)
		w.Last, w.Decimals = w.Last.UTC(), uint8(decimals)
		return w, err
	})
	return list, store.Failed("sum up work", err)
}
