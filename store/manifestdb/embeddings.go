package manifestdb

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// StoredIntent is an intent with its vector, for an index of meanings.
type StoredIntent struct {
	Domain, Name, Description string
	Parameters                []string
	Embedding                 []byte // nil where the model that was asked for made none
}

// ChangedIntents returns the domains whose intents were written since a position, and the position to continue from. A
// reader that starts at 0 gets all domains with intents, and misses none of the changes after that: the position is the
// oldest transaction that may still commit, so that a domain may be returned again.
func ChangedIntents(ctx context.Context, db *store.DB, since uint64) (domains []string, next uint64, err error) {
	var position string
	err = db.Pool().QueryRow(ctx, `
		select pg_snapshot_xmin(s.now)::text, coalesce((
			select array_agg(m.domain order by m.domain) from manifests m
			where case when $1 = '0' then exists (select from manifest_intents i where i.domain = m.domain)
				else m.intents_xid >= $1::text::xid8 and m.intents_xid < pg_snapshot_xmax(s.now) end), '{}')
		from (select pg_current_snapshot() as now) s`, strconv.FormatUint(since, 10)).Scan(&position, &domains)
	if err != nil {
		return nil, since, store.Failed("list changed intents", err)
	}
	next, err = strconv.ParseUint(position, 10, 64)
	return domains, next, err
}

// IntentsOf returns the intents of domains with their vectors of a model.
func IntentsOf(ctx context.Context, db *store.DB, domains []string, model string) ([]StoredIntent, error) {
	rows, _ := db.Pool().Query(ctx, `
		select i.domain, i.name, i.description, i.parameters, case when i.model = $2 then i.embedding end
		from manifest_intents i where i.domain = any($1) order by i.domain, i.position`, domains, model)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (i StoredIntent, err error) {
		return i, row.Scan(&i.Domain, &i.Name, &i.Description, &i.Parameters, &i.Embedding)
	})
	return found, store.Failed("read intents", err)
}

// SaveEmbeddings stores vectors of a model, so that no other process computes them. An intent that changed since it was
// read keeps none: its vector is of another text.
func SaveEmbeddings(ctx context.Context, db *store.DB, model string, intents []StoredIntent) error {
	b := &pgx.Batch{}
	for _, i := range intents {
		b.Queue(`update manifest_intents set embedding = $3, model = $4
			where domain = $1 and name = $2 and description = $5 and parameters = $6`,
			i.Domain, i.Name, i.Embedding, model, i.Description, orNone(i.Parameters))
	}
	return store.Failed("save embeddings", db.Pool().SendBatch(ctx, b).Close())
}
