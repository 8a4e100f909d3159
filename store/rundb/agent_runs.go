package rundb

import (
	"context"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// RunDetails are what lists show of a run besides the run itself.
type RunDetails struct {
	// Trust is the effect of the trust gate's newest decision in the present attempt; empty before.
	Trust string
	// Verified is the score of checking what the run did in the present attempt, 0 to 1; nil before.
	Verified *float64
	// Purchases is what the run paid by x402, as the caps of payments count it.
	Purchases repute.Micros
	// Native is what treasuries paid for it in native coin, in wei, as their events tell. Decimal.
	Native string
	// LastCall is the newest call, without request and result; nil before the first.
	LastCall *repute.Receipt
}

// AgentRuns returns the runs of agents by their identities on the chain, the newest first: of each agent those of all
// modules that have its identity now. An identity without a registry has any. The filter is the same for all agents; its
// Agent selects one of the modules. It is one statement for all of them, and the lists have the order of agents.
func AgentRuns(ctx context.Context, db *store.DB, agents []repute.AgentRef, f RunFilter, most int) ([][]repute.Run, error) {
	chains, registries := make([]int64, len(agents)), make([][]byte, len(agents))
	tokens := make([]store.TokenNum, len(agents))
	for i, a := range agents {
		chains[i], tokens[i] = int64(a.ChainID), store.TokenNum(a.TokenID)
		if a.Registry != nil {
			registries[i] = a.Registry[:]
		}
	}
	// Each module's runs are read in the order of the index on agents, no more than the page has.
	rows, err := db.Readers().Query(ctx, `
		select `+runColumns+`, k.n from unnest($1::bigint[], $2::bytea[], $3::numeric[]) with ordinality as
			k(chain_id, registry, token_id, n)
		cross join lateral (
			select o.* from modules m cross join lateral (
				select * from runs o where o.slug = m.slug and $4 in ('', o.status) and (not $5 or o.awaiting <> '')
					and ($6::timestamptz is null or (o.created_at, o.id) < ($6, $7))
				order by o.created_at desc, o.id desc limit $8) o
			where m.chain_id = k.chain_id and m.token_id = k.token_id and (k.registry is null or m.registry = k.registry)
				and $9 in ('', m.slug)
			order by o.created_at desc, o.id desc limit $8) r
		order by k.n, r.created_at desc, r.id desc`, chains, registries, tokens, string(f.Status), f.Awaiting,
		store.MaybeTime(f.Before), f.BeforeID, most, f.Agent)
	if err != nil {
		return nil, store.Failed("list runs of agents", err)
	}
	out := make([][]repute.Run, len(agents))
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r repute.Run, err error) {
		var n int64
		if r, err = scanRun(row, &n); err == nil {
			out[n-1] = append(out[n-1], r)
		}
		return r, err
	})
	return out, store.Failed("list runs of agents", err)
}

// DetailsOf returns the details of runs by their ids, in one batch of two statements for all of them.
func DetailsOf(ctx context.Context, db *store.DB, runs []repute.Run) (map[string]RunDetails, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	ids, tasks := make([]string, len(runs)), make([]string, len(runs))
	attempts, keys := make([]int, len(runs)), make([][]byte, len(runs))
	for i := range runs {
		r := &runs[i]
		ids[i], tasks[i], attempts[i], keys[i] = r.ID, r.Task, r.Attempt, crypto.Keccak256([]byte(r.ID))
	}
	out := make(map[string]RunDetails, len(runs))
	b := &pgx.Batch{}
	// The operators of JSON refuse a value with an escaped NUL anywhere, which texts of strangers may have. Within a text
	// each quote is escaped, and no other member has these names, so that the patterns find the members alone.
	b.Queue(`
		select k.id,
			coalesce((select d.effect from run_decisions d where d.run_id = k.id and d.attempt = k.attempt and d.kind = $5
				order by d.id desc limit 1), ''),
			(select substring(p.result::text from '"score": *(-?[0-9][0-9.eE+-]*)')::float8
				from run_phases p where p.run_id = k.id and p.attempt = k.attempt and p.phase = $6),
			(select coalesce(sum((a.request->>'worth')::bigint), 0)::bigint from acts a where a.kind = 'purchase' and
				a.refused = '' and a.request->>'task' = k.task and starts_with(a.request->>'call', k.id || '/')),
			(select coalesce(sum(substring(e.fields::text from '"value": *"([0-9]+)"')::numeric), 0)::text from treasury_events e
				where e.run_key = k.key and e.kind = 'NativeExecuted')
		from unnest($1::text[], $2::text[], $3::integer[], $4::bytea[]) as k(id, task, attempt, key)`, ids, tasks, attempts,
		keys, string(repute.DecisionTrust), int(repute.PhaseVerify)).Query(func(rows pgx.Rows) error {
		var id string
		var d RunDetails
		_, err := pgx.ForEachRow(rows, []any{&id, &d.Trust, &d.Verified, &d.Purchases, &d.Native}, func() error {
			out[id] = d
			return nil
		})
		return err
	})
	b.Queue(`
		select c.* from unnest($1::text[]) as k(id) cross join lateral (
			`+shortCalls(`null::json`)+`where run_id = k.id order by run_calls.id desc limit 1) c`, ids).Query(func(rows pgx.Rows) error {
		calls, err := pgx.CollectRows(rows, scanCall)
		for i := range calls {
			d := out[calls[i].Run]
			d.LastCall = &calls[i]
			out[calls[i].Run] = d
		}
		return err
	})
	return out, store.Failed("read details of runs", db.Readers().SendBatch(ctx, b).Close())
}
