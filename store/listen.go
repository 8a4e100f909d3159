package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"repute"
)

// Listen calls heard with the payload of each notification on a channel, until ctx ends or the connection fails. It has
// a connection of its own. Notifications can be lost while there is none, so that the caller MUST also poll. Behind a
// connection pooler, which may leave notifications out, it returns repute.ErrUnavailable.
func (db *DB) Listen(ctx context.Context, channel string, heard func(payload string)) error {
	doing := "listen to " + channel
	conn, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig)
	if err != nil {
		return Failed(doing, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var pid uint32
	if err := conn.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return Failed(doing, err)
	}
	if pid != conn.PgConn().PID() {
		return fmt.Errorf("%s: there is a connection pooler: %w", doing, repute.ErrUnavailable)
	}
	_, err = conn.Exec(ctx, "set idle_session_timeout = 0; listen "+pgx.Identifier{channel}.Sanitize())
	if err != nil {
		return Failed(doing, err)
	}
	for {
		said, err := conn.WaitForNotification(ctx)
		if err != nil {
			return Failed(doing, err)
		}
		heard(said.Payload)
	}
}
