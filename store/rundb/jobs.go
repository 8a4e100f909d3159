package rundb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute/store"
)

// JobCount is how many jobs of the queue have a kind and a state.
type JobCount struct {
	Kind, State string
	Count       int64
}

// Jobs counts the jobs of the queue by kind and state. It reads every job that is kept, so it is for operators.
func Jobs(ctx context.Context, db *store.DB) ([]JobCount, error) {
	rows, _ := db.Readers().Query(ctx,
		`select kind, state::text, count(*) from river_job group by kind, state order by kind, state`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[JobCount])
	return list, store.Failed("count jobs", err)
}
