package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// restoredXID is the transaction id given to changes that another cluster wrote: older than any
// transaction of this one. All of them are committed, so their sequence numbers order them.
const restoredXID = "3"

// settleCluster detects that the database was restored from a dump into another cluster, where
// transaction ids start anew. Without it, readers of the change feed would wait for changes with
// ids of the future, and skip new changes whose ids are lower than the ones they saw. The restored
// changes come first then, and cursors given out before the restore are gone.
func settleCluster(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var here int64
		if err := tx.QueryRow(ctx, "select system_identifier from pg_control_system()").Scan(&here); err != nil {
			return err
		}
		var wrote int64
		err := tx.QueryRow(ctx, "select position from cursors where job = 'cluster' for update").Scan(&wrote)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			_, err = tx.Exec(ctx,
				"insert into cursors (job, position) values ('cluster', $1) on conflict do nothing", here)
			return err
		case err != nil || wrote == here:
			return err
		}
		if _, err := tx.Exec(ctx, "update changes set xid = $1::text::xid8", restoredXID); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "update cursors set position = $1 where job = 'cluster'", here)
		return err
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		return nil // not allowed to ask: docs/how-to/operations.md says what to do after a restore
	}
	return Failed("compare database clusters", err)
}
