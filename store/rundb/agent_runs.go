package rundb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// RunDetails are what lists show of a run and table runs does not store.
type RunDetails struct {
	// Trust is the effect of the newest decision of the trust gate in the current attempt: allow, deny or
	// require_approval; empty before the first.
	Trust string
	// Verified is the agent's score of its own work, 0 to 1, from the phase verify of the current attempt; nil before
	// that has passed.
	Verified *float64
	// Purchases is the x402 payments that the run signed in all attempts, also those that are not settled.
	Purchases repute.Micros
	// LastCall is the newest call, without request and result; nil before the first.
	LastCall *repute.Receipt
}

// AgentRuns returns for each identity on a chain its newest runs, at most limit, in the order of agents, by one
// statement for all, without their inputs and reasons. A run belongs to every identity that its module (table modules)
// has now. A reference without a registry matches the identities of all registries. The filter holds for all agents;
// its Agent selects the module with this slug.
func AgentRuns(ctx context.Context, db *store.DB, agents []repute.AgentRef, f RunFilter,
	limit int) ([][]repute.Run, error) {
	chains, registries := make([]int64, len(agents)), make([][]byte, len(agents))
	tokens := make([]column.TokenNum, len(agents))
	for i, a := range agents {
		chains[i], tokens[i] = int64(a.ChainID), column.TokenNum(a.TokenID)
		if a.Registry != nil {
			registries[i] = a.Registry[:]
		}
	}
	// By index runs_agent (slug, created_at, id) each module stops after limit rows.
	args := []any{chains, registries, tokens, limit}
	where := f.where(&args)
	rows, _ := db.Readers().Query(ctx, `
		select `+listedColumns()+`, k.n from unnest($1::bigint[], $2::bytea[], $3::numeric[]) with ordinality as
			k(chain_id, registry, token_id, n)
		cross join lateral (
			select o.* from modules m cross join lateral (
				select * from runs r where r.slug = m.slug`+where+` order by r.created_at desc, r.id desc limit $4) o
			where m.chain_id = k.chain_id and m.token_id = k.token_id and (k.registry is null or m.registry = k.registry)
			order by o.created_at desc, o.id desc limit $4) r
		order by k.n, r.created_at desc, r.id desc`, args...)
	out := make([][]repute.Run, len(agents))
	_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r repute.Run, err error) {
		var n int64
		if r, err = scanRun(row, &n); err == nil {
			out[n-1] = append(out[n-1], r)
		}
		return r, err
	})
	return out, store.Failed("list runs of agents", err)
}

// ReadDetails returns the details of runs by their ids, in one batch of two statements for all of them.
func ReadDetails(ctx context.Context, db *store.DB, runs []repute.Run) (map[string]RunDetails, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	ids, tasks, attempts := make([]string, len(runs)), make([]string, len(runs)), make([]int, len(runs))
	for i := range runs {
		ids[i], tasks[i], attempts[i] = runs[i].ID, runs[i].Task, runs[i].Attempt
	}
	out := make(map[string]RunDetails, len(runs))
	b := &pgx.Batch{}
	// Postgres refuses -> and ->> on JSON that has an escaped NUL, as a result with untrusted texts may. A pattern
	// finds its member safely, because quotes within texts are escaped: no other member of a result of this phase has
	// the name score. Requests of purchases are written by this program, without untrusted texts but for a host.
	b.Queue(`
		select k.id,
			coalesce((select d.effect from run_decisions d where d.run_id = k.id and d.attempt = k.attempt and d.kind = $4
				order by d.id desc limit 1), ''),
			(select v.score from run_phases p cross join lateral (
				select substring(p.result::text from '"score": *(-?[0-9][0-9.eE+-]*)')::float8 as score) v
				where p.run_id = k.id and p.attempt = k.attempt and p.phase = $5 and p.status = 'ok' and v.score between 0 and 1),
			(select coalesce(sum((a.request->>'worth')::bigint), 0)::bigint from acts a where a.kind = 'purchase' and
				a.refused = '' and a.request->>'task' = k.task and starts_with(a.request->>'call', k.id || '/'))
		from unnest($1::text[], $2::text[], $3::integer[]) as k(id, task, attempt)`, ids, tasks, attempts,
		string(repute.DecisionTrust), int(repute.PhaseVerify)).Query(func(rows pgx.Rows) error {
		var id string
		var d RunDetails
		_, err := pgx.ForEachRow(rows, []any{&id, &d.Trust, &d.Verified, &d.Purchases}, func() error {
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
