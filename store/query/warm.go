package query

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/store"
	"repute/store/chaindb"
)

// Warm opens the connections of readers and lets each of them plan the statements of ReadReputation, by reading one agent
// on all of them at once. Without it the first requests of a busy service wait for that, some of them a hundred times as
// long as later ones. It does nothing where no agent is indexed.
func Warm(ctx context.Context, db *store.DB) error {
	var id repute.AgentID
	err := chaindb.View(ctx, db, "find an agent", func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "select chain_id, token_id from agents limit 1").Scan(&id.ChainID,
			(*store.TokenNum)(&id.TokenID))
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for range db.Readers().Config().MaxConns {
		g.Go(func() error {
			_, err := ReadReputation(ctx, db, id, ReputationQuery{At: repute.At{Finality: repute.Latest}})
			return err
		})
	}
	return g.Wait()
}
