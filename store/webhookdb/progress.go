package webhookdb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// progress executes a statement of the process that delivers a webhook. $1 and $2 of the statement are its id and its
// version. repute.ErrFenced: the lease is lost; repute.ErrConflict: the operator changed or removed the webhook.
func progress(ctx context.Context, db *store.DB, l store.Lease, w *Webhook, sql string, args ...any) error {
	return db.InTx(ctx, pgx.TxOptions{}, "progress of webhook "+w.ID, func(tx pgx.Tx) error {
		if err := store.HoldLease(ctx, tx, l); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sql, append([]any{w.ID, w.Version}, args...)...)
		if err == nil && tag.RowsAffected() == 0 {
			return fmt.Errorf("webhook %s was changed: %w", w.ID, repute.ErrConflict)
		}
		return err
	})
}

// SaveDelivered stores that the receiver accepted n further messages, the last one, of the change of a cursor, at a
// time. It may be repeated where it is not known whether a commit took place: messages up to a stored cursor are not
// counted again.
func SaveDelivered(ctx context.Context, db *store.DB, l store.Lease, w *Webhook, cursor string, n int,
	at time.Time) error {
	return progress(ctx, db, l, w, `
		update webhooks set position = $3, delivered = delivered + case when position = $3 then 0 else $5 end, delivered_at = $4, attempts = 0, failing_since = null,
			next_at = null, last_status = 0, last_error = ''
		where id = $1 and version = $2`, cursor, at, n)
}

// SavePosition stores that nothing up to a cursor is to be delivered any more.
func SavePosition(ctx context.Context, db *store.DB, l store.Lease, w *Webhook, cursor string) error {
	return progress(ctx, db, l, w, "update webhooks set position = $3 where id = $1 and version = $2", cursor)
}

// SaveFailure stores that an attempt failed.
func SaveFailure(ctx context.Context, db *store.DB, l store.Lease, w *Webhook, f Failure) error {
	return progress(ctx, db, l, w, `
		update webhooks set attempts = $3, failing_since = $4, next_at = $5, last_status = $6, last_error = $7
		where id = $1 and version = $2`, f.Attempts, f.Since, f.Next, f.Status, column.PlainText(f.Reason, 200))
}

// Disable stops the deliveries of a webhook until Replay. reason is shown to the operator.
func Disable(ctx context.Context, db *store.DB, l store.Lease, w *Webhook, reason string) error {
	return progress(ctx, db, l, w, `
		update webhooks set disabled = $3, disabled_at = clock_timestamp() where id = $1 and version = $2`,
		column.PlainText(reason, 400))
}
