package tasks

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

// Client submits, cancels and retries tasks, and answers open approvals. It writes rows and jobs;
// an Engine in this process or another does the work.
type Client struct {
	db     *store.DB
	client *river.Client[pgx.Tx] // inserts only
}

// NewClient returns a client.
func NewClient(db *store.DB) (*Client, error) {
	client, err := river.NewClient(riverpgxv5.New(db.Pool()), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	return &Client{db, client}, nil
}

// Submit stores a task and queues it in one transaction. A repeated key returns the first task with
// added false. repute.ErrInvalid names the field.
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
	return rundb.AddTask(ctx, c.db, t, root, func(tx pgx.Tx) error { return Insert(ctx, c.client, tx, root.ID) })
}

// Cancel requests the end of a task. It returns repute.ErrConflict if the task has ended.
func (c *Client) Cancel(ctx context.Context, task, by, reason string) error {
	return rundb.CancelTask(ctx, c.db, task, by, reason)
}

// Approve answers one open approval of a run, by its subject. It returns repute.ErrConflict if the
// run does not wait for it.
func (c *Client) Approve(ctx context.Context, run, subject string, approved bool, by, reason string) error {
	if subject == "" {
		return repute.Invalid("subject", "is missing", "what the answer is about: the run and its events name it")
	}
	return rundb.Approve(ctx, c.db, run, rundb.Approval{Subject: subject, Approved: approved, By: by, Reason: reason},
		func(tx pgx.Tx, root string) error {
			return Insert(ctx, c.client, tx, root)
		})
}

// Retry starts another attempt of a failed task with a phase; zero is the phase that failed. It
// returns repute.ErrConflict if the task did not fail.
func (c *Client) Retry(ctx context.Context, task string, from repute.Phase, by string) error {
	return rundb.RetryTask(ctx, c.db, task, from, by,
		func(tx pgx.Tx, root string) error { return Insert(ctx, c.client, tx, root) })
}

// RunJob works on a root run.
type RunJob struct {
	Root string `json:"root"`
}

// Kind names the jobs.
func (RunJob) Kind() string { return "run" }

// Queue is the queue of river that the jobs are in.
const Queue = "runs"

// InsertOpts requests no unique jobs: the lease of a run has one owner however many jobs there are.
// A failed job is not retried; the engine that finds the lease expired inserts another.
func (RunJob) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, MaxAttempts: 3}
}

// Insert adds jobs for runs in a transaction.
func Insert(ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx, roots ...string) error {
	jobs := make([]river.InsertManyParams, len(roots))
	for i, root := range roots {
		jobs[i] = river.InsertManyParams{Args: RunJob{root}}
	}
	_, err := client.InsertManyTx(ctx, tx, jobs)
	return err
}
