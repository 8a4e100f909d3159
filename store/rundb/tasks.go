package rundb

import (
	"context"
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

// AddTask stores a task with its root run and queues it with queue, in one transaction. When a task
// with the same key exists, it is returned and added is false.
func AddTask(ctx context.Context, db *store.DB, t repute.Task, root repute.Run,
	queue func(pgx.Tx) error) (out repute.Task, added bool, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "add task", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			insert into tasks (id, goal, input, coordinator, terms, key, asked_by, status)
			values ($1, $2, $3, $4, $5, nullif($6, ''), $7, $8) on conflict (key) do nothing`,
			t.ID, column.CleanText(t.Goal), column.OrNull(t.Input), t.Coordinator, t.Terms, column.CleanText(t.Key),
			column.CleanText(t.By), repute.TaskPending)
		if added = tag.RowsAffected() > 0; err != nil || !added {
			return err
		}
		root.Task, root.Root, root.Goal, root.Input = t.ID, root.ID, t.Goal, t.Input
		if err := insertRun(ctx, tx, root); err != nil {
			return err
		}
		if err := addEvents(ctx, tx, root.ID, newEvent(root.ID, "task.added", map[string]any{"task": t.ID})); err != nil {
			return err
		}
		return queue(tx)
	})
	if err != nil {
		return out, false, err
	}
	if !added {
		out, err = oneTask(ctx, db, `t.key = $1`, column.CleanText(t.Key))
		return out, false, err
	}
	out, err = Task(ctx, db, t.ID)
	return out, true, err
}

// insertRun stores a new run.
func insertRun(ctx context.Context, tx pgx.Tx, r repute.Run) error {
	_, err := tx.Exec(ctx, `
		insert into runs (id, task_id, root_id, parent_id, parent_step, slug, goal, input, max_steps, max_tool_calls,
			max_writes, max_runtime_ms, max_gas, max_tokens, max_cost, lost_after)
		values ($1, $2, $3, nullif($4, ''), $5, $6, $7, $8, $9, $10, $11, $12, nullif($13, '')::numeric, nullif($14::bigint, 0),
			nullif($15::bigint, 0),
			case when $4 = '' then clock_timestamp() + interval '`+jobWait+`' else 'infinity' end)
		on conflict (parent_id, parent_step) do nothing`,
		r.ID, r.Task, r.Root, r.Parent, r.ParentStep, r.Agent, column.CleanText(r.Goal), column.OrNull(r.Input),
		r.Limits.Steps, r.Limits.ToolCalls, r.Limits.Writes, r.Limits.Runtime.Milliseconds(), r.Limits.GasWei,
		r.Limits.Tokens, int64(r.Limits.Cost))
	return err
}

// selectTask begins the statements that scanTask reads.
const selectTask = `select t.id, t.goal, t.input, t.coordinator, t.terms, coalesce(t.key, ''), t.asked_by, t.status,
	coalesce(r.id, ''), coalesce(r.awaiting, ''), coalesce(r.error, ''), t.created_at, t.updated_at
	from tasks t left join runs r on r.task_id = t.id and r.parent_id is null `

// scanTask reads a row of selectTask.
func scanTask(row pgx.CollectableRow) (t repute.Task, err error) {
	err = row.Scan(&t.ID, &t.Goal, &t.Input, &t.Coordinator, &t.Terms, &t.Key, &t.By, &t.Status, &t.Run, &t.Awaiting,
		&t.Error, &t.Created, &t.Updated)
	t.Created, t.Updated = t.Created.UTC(), t.Updated.UTC()
	return t, err
}

// Task returns the task of an id. repute.ErrNotFound when there is none.
func Task(ctx context.Context, db *store.DB, id string) (repute.Task, error) {
	t, err := oneTask(ctx, db, `t.id = $1`, column.CleanText(id))
	if errors.Is(err, pgx.ErrNoRows) {
		return t, repute.Unknown("task %q", id)
	}
	return t, err
}

// oneTask returns the task that meets a condition.
func oneTask(ctx context.Context, db *store.DB, where string, arg any) (repute.Task, error) {
	rows, _ := db.Readers().Query(ctx, selectTask+"where "+where, arg)
	t, err := pgx.CollectExactlyOneRow(rows, scanTask)
	return t, store.Failed("read task", err)
}

// TaskFilter selects the tasks to list. The zero value selects all.
type TaskFilter struct {
	// Status selects tasks with one status; empty for all.
	Status repute.TaskStatus
	// Coordinator selects the tasks of one agent by its slug; empty for all.
	Coordinator string
	// Awaiting selects tasks that wait for a person.
	Awaiting bool
	// Before and BeforeID are the task to continue after; zero for the newest.
	Before   time.Time
	BeforeID string
}

// Tasks returns tasks, the newest first.
func Tasks(ctx context.Context, db *store.DB, f TaskFilter, most int) ([]repute.Task, error) {
	args := []any{most}
	rows, _ := db.Readers().Query(ctx, selectTask+`where true`+
		listed{"t", "coordinator", string(f.Status), f.Coordinator,
			f.Awaiting, f.Before, f.BeforeID}.where(&args)+` order by t.created_at desc, t.id desc limit $1`, args...)
	list, err := pgx.CollectRows(rows, scanTask)
	return list, store.Failed("list tasks", err)
}

// runColumns are the columns that scanRun reads.
const runColumns = `r.id, r.task_id, r.root_id, coalesce(r.parent_id, ''), r.parent_step, r.slug, r.goal, r.input, r.status, r.awaiting,
	r.attempt, r.phase, r.max_steps, r.max_tool_calls, r.max_writes, r.max_runtime_ms, coalesce(r.max_gas::text, ''),
	coalesce(r.max_tokens, 0), coalesce(r.max_cost, 0),
	r.steps, r.tool_calls, r.writes, r.runtime_ms, r.gas::text, r.tokens, r.cost, r.reasons, r.error, r.cancel, r.created_at,
		r.started_at, r.ended_at`

// listedColumns returns runColumns without what lists do not show: an input has up to 256 KiB.
func listedColumns() string {
	return strings.NewReplacer("r.input", "null::json", "r.reasons", "'[]'::json").Replace(runColumns)
}

// selectRuns begins the statements that scanRunRow reads.
const selectRuns = `select ` + runColumns + ` from runs r `

// scanRunRow reads a row of selectRuns.
func scanRunRow(row pgx.CollectableRow) (repute.Run, error) { return scanRun(row) }

// scanRun reads a row of runColumns and of further columns.
func scanRun(row pgx.CollectableRow, further ...any) (r repute.Run, err error) {
	var most, took int64
	var started, ended *time.Time
	err = row.Scan(append([]any{&r.ID, &r.Task, &r.Root, &r.Parent, &r.ParentStep, &r.Agent, &r.Goal, &r.Input,
		&r.Status, &r.Awaiting,
		&r.Attempt, &r.Phase, &r.Limits.Steps, &r.Limits.ToolCalls, &r.Limits.Writes, &most, &r.Limits.GasWei,
		&r.Limits.Tokens, &r.Limits.Cost, &r.Used.Steps, &r.Used.ToolCalls, &r.Used.Writes, &took, &r.Used.GasWei,
		&r.Used.Tokens, &r.Used.Cost, &r.Reasons, &r.Error, &r.Cancel,
		&r.Created, &started, &ended}, further...)...)
	r.Limits.Runtime, r.Used.Runtime = time.Duration(most)*time.Millisecond, time.Duration(took)*time.Millisecond
	r.Created, r.Started, r.Ended = r.Created.UTC(), column.TimeOf(started), column.TimeOf(ended)
	return r, err
}

// Run returns the run of an id. repute.ErrNotFound when there is none.
func Run(ctx context.Context, db *store.DB, id string) (repute.Run, error) {
	list, err := runs(ctx, db, `where r.id = $1`, column.CleanText(id))
	if err == nil && len(list) == 0 {
		return repute.Run{}, repute.Unknown("run %q", id)
	}
	if err != nil {
		return repute.Run{}, err
	}
	return list[0], nil
}

// TaskRuns returns all runs of a task, the root run first, then by creation.
func TaskRuns(ctx context.Context, db *store.DB, task string) ([]repute.Run, error) {
	return runs(ctx, db, `where r.task_id = $1 order by r.parent_id is not null, r.created_at, r.id`,
		column.CleanText(task))
}

// RunFilter selects the runs to list. The zero value selects all.
type RunFilter struct {
	// Status selects runs with one status; empty for all.
	Status repute.RunStatus
	// Agent selects the runs of one agent by its slug; empty for all.
	Agent string
	// Awaiting selects runs that wait for a person.
	Awaiting bool
	// Before and BeforeID are the run to continue after; zero for the newest.
	Before   time.Time
	BeforeID string
}

// where is listed.where for runs r.
func (f RunFilter) where(args *[]any) string {
	return listed{"r", "slug", string(f.Status), f.Agent, f.Awaiting, f.Before, f.BeforeID}.where(args)
}

// listed is a filter of tasks t with their root runs r, or of runs r alone: the alias of what is listed, and its column
// of the agent. The rest is as in TaskFilter and RunFilter.
type listed struct {
	alias, column string
	status, agent string
	awaiting      bool
	before        time.Time
	beforeID      string
}

// where returns the conditions of the filter, each after an "and", and adds their parameters to args. A filter has the
// conditions alone that it needs: a plan for all filters would read all rows.
func (f listed) where(args *[]any) (sql string) {
	and := func(condition string, values ...any) {
		for _, v := range values {
			if s, is := v.(string); is {
				v = column.CleanText(s) // what Postgres refuses as text is equal to nothing that is stored
			}
			*args = append(*args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(*args)), 1)
		}
		sql += " and " + condition
	}
	if f.status != "" {
		and(f.alias+".status = ?", f.status)
	}
	if f.agent != "" {
		and(f.alias+"."+f.column+" = ?", f.agent)
	}
	if f.awaiting {
		and("r.awaiting <> ''")
	}
	if !f.before.IsZero() {
		and(fmt.Sprintf("(%[1]s.created_at, %[1]s.id) < (?, ?)", f.alias), f.before, f.beforeID)
	}
	return sql
}

// Runs returns runs of all tasks, the newest first, without their inputs and reasons.
func Runs(ctx context.Context, db *store.DB, f RunFilter, most int) ([]repute.Run, error) {
	args := []any{most}
	rows, _ := db.Readers().Query(ctx, `select `+listedColumns()+` from runs r where true`+f.where(&args)+`
		order by r.created_at desc, r.id desc limit $1`, args...)
	list, err := pgx.CollectRows(rows, scanRunRow)
	return list, store.Failed("list runs", err)
}

// runs returns the runs that meet a condition.
func runs(ctx context.Context, db *store.DB, where string, arg any) ([]repute.Run, error) {
	rows, _ := db.Readers().Query(ctx, selectRuns+where, arg)
	list, err := pgx.CollectRows(rows, scanRunRow)
	return list, store.Failed("read runs", err)
}

// Phases returns the recorded phases of a run, of all attempts in order. Phases that an attempt
// copied from the one before are included in both.
func Phases(ctx context.Context, db *store.DB, run string) ([]repute.RunPhase, error) {
	rows, _ := db.Readers().Query(ctx, selectPhases+`where run_id = $1 order by attempt, phase`,
		column.CleanText(run))
	list, err := pgx.CollectRows(rows, scanPhase)
	return list, store.Failed("read phases", err)
}

// selectPhases begins the statements that scanPhase reads.
const selectPhases = `select phase, attempt, status, result, error, started_at, ended_at from run_phases `

// scanPhase reads a row of selectPhases.
func scanPhase(row pgx.CollectableRow) (p repute.RunPhase, err error) {
	err = row.Scan(&p.Phase, &p.Attempt, &p.Status, &p.Result, &p.Error, &p.Started, &p.Ended)
	p.Started, p.Ended = p.Started.UTC(), p.Ended.UTC()
	return p, err
}

// Events returns up to most events of a root run after a number.
func Events(ctx context.Context, db *store.DB, root string, after int64, most int) ([]repute.RunEvent, error) {
	rows, _ := db.Readers().Query(ctx, `
		select number, run_id, kind, data, at from run_events where root_id = $1 and number > $2 order by number limit $3`, column.CleanText(root), after, most)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e repute.RunEvent, err error) {
		err = row.Scan(&e.Number, &e.Run, &e.Kind, &e.Data, &e.Time)
		e.Time = e.Time.UTC()
		return e, err
	})
	return list, store.Failed("read events", err)
}

// addEvents numbers events after those of the root run, whose row it locks. NUL characters in their
// data are replaced, because no text taken from it could hold them.
func addEvents(ctx context.Context, tx pgx.Tx, root string, events ...repute.RunEvent) error {
	if len(events) == 0 {
		return nil
	}
	runs, kinds, data := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	for i, e := range events {
		runs[i], kinds[i], data[i] = e.Run, e.Kind, string(column.EscapeNUL(column.OrNull(e.Data)))
	}
	tag, err := tx.Exec(ctx, `
		with r as (update runs set events = events + $2 where id = $1 returning events - $2 as last)
		insert into run_events (root_id, number, run_id, kind, data)
		select $1, r.last + e.n, e.run, e.kind, e.data::json
		from r, unnest($3::text[], $4::text[], $5::text[]) with ordinality as e(run, kind, data, n)`, root, len(events), runs, kinds, data)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("run %s: %w", root, repute.ErrNotFound)
	}
	return err
}

// newEvent returns an event of a run, without its number and time.
func newEvent(run, kind string, data map[string]any) repute.RunEvent {
	return repute.RunEvent{Run: run, Kind: kind, Data: mustJSON(data)}
}

// mustJSON encodes values that cannot fail to encode.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
