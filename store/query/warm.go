package query

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Warm opens the connections that snapshots are read from and prepares the statements of ReadReputation on each, by a
// read of one agent. Without it the first requests under load wait up to 300 ms, because each opens a connection and
// plans its statements. Warm does nothing where no agent is indexed.
func Warm(ctx context.Context, db *store.DB) error {
	var id repute.AgentID
	err := chaindb.View(ctx, db, "find an agent", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "select chain_id, token_id from agents limit 1").Scan(&id.ChainID,
			(*column.TokenNum)(&id.TokenID))
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return db.InSnapshots(ctx, "prepare connections", func(ctx context.Context, tx pgx.Tx) error {
		_, err := readReputation(ctx, tx, id, ReputationQuery{At: repute.At{Finality: repute.Latest}})
		return err
	})
}
