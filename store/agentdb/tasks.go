package agentdb

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
)

// TaskState is how far a task of A2A is.
type TaskState string

// States. The last four are final.
const (
	TaskWorking       TaskState = "working"
	TaskInputRequired TaskState = "input_required"
	TaskCompleted     TaskState = "completed"
	TaskFailed        TaskState = "failed"
	TaskRejected      TaskState = "rejected"
	TaskCanceled      TaskState = "canceled"
)

// Task is a task of A2A.
type Task struct {
	Agent string // full id
	ID    string
	State TaskState
	JSON  json.RawMessage
}

// taskTime is how long a task is kept after its last change, and staleTasks is how many expired ones
// each change deletes.
const (
	taskTime   = time.Hour
	staleTasks = 10
)

// PutTask stores a task, unless it is stored in a final state: then it returns repute.ErrConflict.
func PutTask(ctx context.Context, db *store.DB, t Task) error {
	return db.InTx(ctx, pgx.TxOptions{}, "store task", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from agent_tasks where (agent, id) in (
			select agent, id from agent_tasks where expires_at < now() limit $1 for update skip locked)`, staleTasks); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into agent_tasks (agent, id, state, task, expires_at) values ($1, $2, $3, $4, now() + $5::interval)
			on conflict (agent, id) do update set state = excluded.state, task = excluded.task,
				expires_at = excluded.expires_at
			where agent_tasks.state in ('working', 'input_required')`, t.Agent, t.ID, t.State, t.JSON, taskTime)
		if err == nil && tag.RowsAffected() == 0 {
			return repute.Conflict("task: %.80s has ended", t.ID)
		}
		return err
	})
}

// ReadTask returns a task; repute.ErrNotFound where there is none, or it has expired.
func ReadTask(ctx context.Context, db *store.DB, agent, id string) (Task, error) {
	t := Task{Agent: agent, ID: id}
	err := db.Pool().QueryRow(ctx, `select state, task from agent_tasks where agent = $1 and id = $2 and expires_at > now()`,
		agent, store.CleanText(id)).Scan(&t.State, &t.JSON)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, &repute.MissingError{What: "task", Why: "is not stored", Hint: "tasks are kept for an hour"}
	}
	return t, store.Failed("read task", err)
}
