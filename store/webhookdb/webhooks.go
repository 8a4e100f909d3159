package webhookdb

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// maxWebhooks is how many webhooks there can be. Each one has a follower of the feed in the process that delivers it.
const maxWebhooks = 100

// overlap is how long messages are signed with the former secret too.
const overlap = 24 * time.Hour

// Webhook is an address that changes are sent to, in the order of the feed.
type Webhook struct {
	ID     string
	URL    string
	Filter Filter
	// Cursor is the place in the feed up to which everything was delivered or not selected; empty: before the oldest
	// change that is kept.
	Cursor string
	// Version is raised when the operator changes the webhook.
	Version int64
	// Secret signs messages, and so does Former until FormerUntil. Former is nil where the secret was not rotated
	// lately.
	Secret, Former Secret
	FormerUntil    time.Time
	Created        time.Time
	By             string // name of the token that added it
	// Delivered counts messages that the receiver accepted, the last one at DeliveredAt.
	Delivered   int64
	DeliveredAt time.Time
	// Failure is about the message that is being delivered, zero where the last one was accepted.
	Failure Failure
	// Disabled is why nothing is delivered, empty while it is. It was set at DisabledAt.
	Disabled   string
	DisabledAt time.Time
}

// Failure says how the attempts to deliver a message went.
type Failure struct {
	Attempts int       // in a row
	Since    time.Time // of the first one
	Next     time.Time // when the next one is due
	Status   int       // of the last answer, 0 without an answer
	Reason   string    // of the last one, without anything that the receiver wrote
}

// Lease returns the name of the lease that the process which delivers a webhook MUST have.
func Lease(id string) string { return "webhook:" + id }

// Add stores a webhook with a new id and a new secret. repute.ErrLimited when there are maxWebhooks already.
func Add(ctx context.Context, db *store.DB, w Webhook) (Webhook, error) {
	w.ID, w.Secret = "wh_"+strings.ToLower(rand.Text()), newSecret()
	filter, err := json.Marshal(w.Filter)
	if err != nil {
		return w, fmt.Errorf("filter of a webhook: %w", err)
	}
	err = db.InTx(ctx, pgx.TxOptions{}, "add webhook", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock(hashtextextended('webhooks', 0))"); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, "select count(*) from webhooks").Scan(&n); err != nil {
			return err
		}
		if n >= maxWebhooks {
			return fmt.Errorf("there are %d webhooks, which is the most: %w", n, repute.ErrLimited)
		}
		return tx.QueryRow(ctx, `
			insert into webhooks (id, url, filter, position, secret, added_by) values ($1, $2, $3, $4, $5, $6)
			returning created_at, version`, w.ID, w.URL, filter, w.Cursor, []byte(w.Secret), w.By).Scan(&w.Created, &w.Version)
	})
	w.Created = w.Created.UTC()
	return w, err
}

// selectWebhooks begins the statements that scan reads.
const selectWebhooks = `
	select id, url, filter, position, version, secret, former_secret, former_until, created_at, added_by, delivered,
		delivered_at, attempts, failing_since, next_at, last_status, last_error, disabled, disabled_at
	from webhooks `

// scan reads a row of selectWebhooks.
func scan(row pgx.CollectableRow) (w Webhook, err error) {
	var filter, secret, former []byte
	var until, delivered, since, next, disabled *time.Time
	err = row.Scan(&w.ID, &w.URL, &filter, &w.Cursor, &w.Version, &secret, &former, &until, &w.Created, &w.By,
		&w.Delivered,
		&delivered, &w.Failure.Attempts, &since, &next, &w.Failure.Status, &w.Failure.Reason, &w.Disabled, &disabled)
	if err != nil {
		return w, err
	}
	w.Secret, w.Former, w.FormerUntil, w.Created = secret, former, column.TimeOf(until), w.Created.UTC()
	w.DeliveredAt, w.DisabledAt = column.TimeOf(delivered), column.TimeOf(disabled)
	w.Failure.Since, w.Failure.Next = column.TimeOf(since), column.TimeOf(next)
	if err := json.Unmarshal(filter, &w.Filter); err != nil {
		return w, fmt.Errorf("filter of webhook %s: %w", w.ID, err)
	}
	return w, nil
}

// List returns all webhooks, the oldest first.
func List(ctx context.Context, db *store.DB) ([]Webhook, error) {
	rows, _ := db.Readers().Query(ctx, selectWebhooks+"order by created_at, id")
	list, err := pgx.CollectRows(rows, scan)
	return list, store.Failed("list webhooks", err)
}

// Read returns a webhook. repute.ErrNotFound when there is none.
func Read(ctx context.Context, db *store.DB, id string) (Webhook, error) {
	rows, _ := db.Readers().Query(ctx, selectWebhooks+"where id = $1", column.CleanText(id))
	w, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return w, unknown(id)
	}
	return w, store.Failed("read webhook", err)
}

// unknown returns the error for an id that no webhook has.
func unknown(id string) error {
	return &repute.MissingError{What: fmt.Sprintf("webhook %.64q", id), Why: "does not exist",
		Hint: "GET /v1/webhooks lists webhooks"}
}

// change executes a statement of the operator on one webhook. repute.ErrNotFound when there is none.
func change(ctx context.Context, db *store.DB, doing, sql, id string, args ...any) error {
	tag, err := db.Pool().Exec(ctx, sql, append([]any{column.CleanText(id)}, args...)...)
	if err == nil && tag.RowsAffected() == 0 {
		return unknown(id)
	}
	return store.Failed(doing, err)
}

// Remove deletes a webhook. A message that is on its way still arrives. repute.ErrNotFound when there is none.
func Remove(ctx context.Context, db *store.DB, id string) error {
	return change(ctx, db, "remove webhook", "delete from webhooks where id = $1", id)
}

// Rotate gives a webhook a new secret and returns it. For 24 hours messages are signed with both.
// repute.ErrNotFound when there is no such webhook.
func Rotate(ctx context.Context, db *store.DB, id string) (Secret, error) {
	s := newSecret()
	return s, change(ctx, db, "rotate secret of webhook", `
		update webhooks set former_secret = secret, former_until = clock_timestamp() + $3::interval, secret = $2,
			version = version + 1
		where id = $1`, id, []byte(s), overlap)
}

// Replay continues a webhook after a cursor of the feed, which the caller has checked, and enables it.
// repute.ErrNotFound when there is no such webhook.
func Replay(ctx context.Context, db *store.DB, id, cursor string) error {
	return change(ctx, db, "replay webhook", `
		update webhooks set position = $2, disabled = '', disabled_at = null, attempts = 0, failing_since = null, next_at = null,
			last_status = 0, last_error = '', version = version + 1
		where id = $1`, id, cursor)
}
