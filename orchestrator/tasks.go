package orchestrator

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/store"
	"repute/store/rundb"
)

// Client submits, cancels and retries tasks, and answers what their runs wait for. It writes
// rows and jobs; the work is done by an Engine, in this process or another.
type Client struct {
	db     *store.DB
	client *river.Client[pgx.Tx] // inserts only
}

// NewClient makes a client.
func NewClient(db *store.DB) (*Client, error) {
	client, err := river.NewClient(riverpgxv5.New(db.Pool()), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	return &Client{db, client}, nil
}

// Submit stores a task and queues it, in one transaction. Asking again with the same key
// gives the same task; added tells the difference. repute.ErrInvalid names the field.
func (c *Client) Submit(ctx context.Context, r standard.Request) (t repute.Task, added bool, err error) {
	if err := r.Check(); err != nil {
		return t, false, err
	}
	if _, err := rundb.Module(ctx, c.db, r.Coordinator); err != nil {
		return t, false, fmt.Errorf("coordinatorSlug: %w", err)
	}
	t = repute.Task{ID: journal.NewID("task"), Goal: r.Goal, Input: r.Input, Coordinator: r.Coordinator,
		Terms: journal.JSON(r.Terms), Key: r.Key, By: r.By}
	root := repute.Run{ID: journal.NewID("run"), Agent: r.Coordinator, Limits: r.Terms.Limits()}
	return rundb.AddTask(ctx, c.db, t, root, func(tx pgx.Tx) error { return queue(ctx, c.client, tx, root.ID) })
}

// Cancel asks that a task end. repute.ErrConflict when it has.
func (c *Client) Cancel(ctx context.Context, task, by, reason string) error {
	return rundb.CancelTask(ctx, c.db, task, by, reason)
}

// Approve answers one of the things that a run waits for, by its subject.
// repute.ErrConflict when it does not wait for that one.
func (c *Client) Approve(ctx context.Context, run, subject string, approved bool, by, reason string) error {
	if subject == "" {
		return repute.Invalid("subject", "is missing", "what the answer is about: the run and its events name it")
	}
	return rundb.Approve(ctx, c.db, run, rundb.Approval{Subject: subject, Approved: approved, By: by, Reason: reason},
		func(tx pgx.Tx, root string) error {
			return queue(ctx, c.client, tx, root)
		})
}

// Retry begins another attempt of a task that failed, from a phase on; the zero phase is
// the one that failed. repute.ErrConflict when it did not fail.
func (c *Client) Retry(ctx context.Context, task string, from repute.Phase, by string) error {
	return rundb.RetryTask(ctx, c.db, task, from, by,
		func(tx pgx.Tx, root string) error { return queue(ctx, c.client, tx, root) })
}
