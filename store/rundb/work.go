package rundb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Lease is the claim of a worker on a root run and the runs below it. Writes of a worker that lost
// it are refused.
type Lease struct {
	// Root is the id of the root run.
	Root string
	// Fence is the number of the claim; each TakeRun raises it.
	Fence int64
}

// Work is a run with what a worker needs to continue it.
type Work struct {
	repute.Run
	Task   repute.Task
	Phases map[repute.Phase]repute.RunPhase // of the present attempt
}

// countTime is the SQL that updates for how long a claimed root run was worked on.
const countTime = `runtime_ms = greatest(runtime_ms, (extract(epoch from clock_timestamp() - counted_from) * 1000)::bigint)`

// TakeRun claims a root run for hold; HoldRuns extends the claim. repute.ErrHeld while another
// worker has it. repute.ErrConflict when the run has ended or waits for a person, so there is
// nothing to do.
func TakeRun(ctx context.Context, db *store.DB, root string, hold time.Duration) (w Work, l Lease, err error) {
	l.Root = root
	err = db.InTx(ctx, pgx.TxOptions{}, "take run", func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			update runs set fence = fence + 1, held_until = clock_timestamp() + $2, lost_after = clock_timestamp() + $2,
				counted_from = clock_timestamp() - runtime_ms * interval '1 millisecond', started_at = coalesce(started_at, now())
			where id = $1 and ended_at is null and awaiting = '' and held_until <= clock_timestamp() returning fence`, root, hold).Scan(&l.Fence)
		if errors.Is(err, pgx.ErrNoRows) {
			return whyNot(ctx, tx, root)
		}
		if err != nil {
			return err
		}
		w, err = readWork(ctx, tx, root)
		return err
	})
	return w, l, err
}

// whyNot returns the error for a run that cannot be claimed.
func whyNot(ctx context.Context, tx pgx.Tx, root string) error {
	var idle bool
	err := tx.QueryRow(ctx, `select ended_at is not null or awaiting <> '' from runs where id = $1`, root).Scan(&idle)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return repute.Unknown("run %q", root)
	case err != nil:
		return err
	case idle:
		return fmt.Errorf("run %s has ended or waits: %w", root, repute.ErrConflict)
	}
	return fmt.Errorf("run %s: %w", root, repute.ErrHeld)
}

// readWork reads a run with its phases.
func readWork(ctx context.Context, tx pgx.Tx, id string) (w Work, err error) {
	rows, _ := tx.Query(ctx, selectRuns+`where r.id = $1`, id)
	if w.Run, err = pgx.CollectExactlyOneRow(rows, scanRunRow); err != nil {
		return w, err
	}
	if rows, err = tx.Query(ctx, selectTask+`where t.id = $1`, w.Run.Task); err != nil {
		return w, err
	}
	if w.Task, err = pgx.CollectExactlyOneRow(rows, scanTask); err != nil {
		return w, err
	}
	if rows, err = tx.Query(ctx, selectPhases+`where run_id = $1 and attempt = $2`, id, w.Attempt); err != nil {
		return w, err
	}
	phases, err := pgx.CollectRows(rows, scanPhase)
	w.Phases = map[repute.Phase]repute.RunPhase{}
	for _, p := range phases {
		w.Phases[p.Phase] = p
	}
	return w, err
}

// Held is a root run that the caller still has.
type Held struct {
	Lease
	Cancel string // why it shall end, empty: it shall not
}

// HoldRuns extends claims by hold and updates the runs' times. It returns the runs that the caller
// still has, and whether each is canceled.
func HoldRuns(ctx context.Context, db *store.DB, leases []Lease, hold time.Duration) ([]Held, error) {
	roots, fences := make([]string, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		roots[i], fences[i] = l.Root, l.Fence
	}
	rows, _ := db.Pool().Query(ctx, `
		update runs r set held_until = case when awaiting = '' then clock_timestamp() + $3 else held_until end,
			lost_after = case when awaiting = '' then clock_timestamp() + $3 else lost_after end, `+countTime+`
		from unnest($1::text[], $2::bigint[]) l(root, fence)
		where r.id = l.root and r.fence = l.fence and r.ended_at is null returning r.id, r.fence, r.cancel`, roots, fences, hold)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Held, err error) {
		return h, row.Scan(&h.Root, &h.Fence, &h.Cancel)
	})
	return list, store.Failed("hold runs", err)
}

// ReleaseRun ends a claim of a run that is not done, so that another worker can claim it at once.
func ReleaseRun(ctx context.Context, db *store.DB, l Lease) error {
	_, err := db.Pool().Exec(ctx, `
		update runs set held_until = '-infinity', lost_after = clock_timestamp() + interval '5 seconds', `+countTime+`
		where id = $1 and fence = $2 and ended_at is null and awaiting = ''`, l.Root, l.Fence)
	return store.Failed("release run", err)
}

// jobWait is how long a queued run may stay unclaimed before its job is considered lost.
const jobWait = "15 seconds"

// RequeueLost queues up to most runs whose worker or whose job is lost, and returns how many. A job
// is lost when its worker dies after fetching it and before claiming the run.
func RequeueLost(ctx context.Context, db *store.DB, most int, queue func(tx pgx.Tx, roots []string) error) (n int,
	err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "requeue lost runs", func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			with lost as (
				update runs set lost_after = clock_timestamp() + interval '`+jobWait+`' where id in (
					select id from runs where lost_after < clock_timestamp() and ended_at is null and awaiting = ''
					order by lost_after limit $1 for update skip locked)
				returning id)
			select id from lost where id not in (
				select args->>'root' from river_job where kind = 'run' and state in ('available', 'scheduled', 'retryable'))`, most)
		roots, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if n = len(roots); err != nil || n == 0 {
			return err
		}
		return queue(tx, roots)
	})
	return n, err
}

// PhaseOutcome is everything that is stored at the end of a phase.
type PhaseOutcome struct {
	// Run is the id of the run.
	Run string
	repute.RunPhase
	// Status is the status of the run from now on.
	Status repute.RunStatus
	// Task is the status of the task from now on; empty leaves it as it is.
	Task repute.TaskStatus
	// Awaiting is what the run waits for from now on; empty when it does not wait.
	Awaiting string
	// Ended says that the run has ended.
	Ended bool
	// Reasons says why the run was refused; nil leaves them as they are.
	Reasons json.RawMessage
	// Failure is why the run failed; empty leaves it as it is.
	Failure string
	// Receipts are calls of the phase that are stored with it.
	Receipts []repute.Receipt
	// Decisions are appended to the chain of the root run.
	Decisions []Decision
	// Events are numbered and appended to the events of the root run.
	Events []repute.RunEvent
}

// SavePhase stores the outcome of a phase in one transaction, together with the writes of also.
// repute.ErrFenced when another worker has the run; nothing is stored then.
func SavePhase(ctx context.Context, db *store.DB, l Lease, o PhaseOutcome, also func(pgx.Tx) error) error {
	return l.inTx(ctx, db, fmt.Sprintf("save phase %s of run %s", o.Phase, o.Run), func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		queuePhase(b, l.Root, &o)
		var left []repute.RunEvent
		if o.Ended && o.Run == l.Root {
			status := repute.RunFailed
			if o.Status == repute.RunCancelled {
				status = repute.RunCancelled
			}
			queueEndBelow(b, l.Root, status, "the run above ended first", &left)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if err := addDecisions(ctx, db, tx, l.Root, o.Run, o.Decisions); err != nil {
			return err
		}
		if err := addEvents(ctx, tx, l.Root, append(left, o.Events...)...); err != nil {
			return err
		}
		if o.Awaiting != "" { // no worker would see a cancellation while it waits
			if err := endCanceled(ctx, tx, l.Root); err != nil {
				return err
			}
		}
		if also == nil {
			return nil
		}
		return also(tx)
	})
}

// DelayPhase stores that a phase failed and is retried, as one event phase.delayed per attempt. It
// returns the time of the first such failure and the current time, by the database's clock.
// repute.ErrFenced as in SavePhase.
func DelayPhase(ctx context.Context, db *store.DB, l Lease, run string, p repute.Phase, attempt int,
	reason string) (since, now time.Time, err error) {
	err = l.inTx(ctx, db, fmt.Sprintf("note the delay of run %s", run), func(tx pgx.Tx) error {
		first := func() error {
			return tx.QueryRow(ctx, `
				select at, clock_timestamp() from run_events
				where root_id = $1 and run_id = $2 and kind = 'phase.delayed' and data->>'phase' = $3 and
					(data->>'attempt')::int = $4
				order by number limit 1`, l.Root, run, p.String(), attempt).Scan(&since, &now)
		}
		err := first()
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		delayed := newEvent(run, "phase.delayed",
			map[string]any{"phase": p.String(), "attempt": attempt, "error": reason})
		if err := addEvents(ctx, tx, l.Root, delayed); err != nil {
			return err
		}
		return first()
	})
	return since.UTC(), now.UTC(), err
}

// inTx runs f in a transaction that has locked the root run and updated its time, so that writes of one task never
// overlap. repute.ErrFenced when another worker has the run, or it has ended; f is not called then.
func (l Lease) inTx(ctx context.Context, db *store.DB, doing string, f func(pgx.Tx) error) error {
	return db.InTx(ctx, pgx.TxOptions{}, doing, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update runs set `+countTime+` where id = $1 and fence = $2 and ended_at is null`,
			l.Root, l.Fence)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("run %s: %w", l.Root, repute.ErrFenced)
		}
		return f(tx)
	})
}

// CheckLease reports as repute.ErrFenced that another worker has the run, or that it has ended.
func CheckLease(ctx context.Context, db *store.DB, l Lease) error {
	var held bool
	err := db.Pool().QueryRow(ctx, `select exists (select from runs where id = $1 and fence = $2 and ended_at is null)`,
		l.Root, l.Fence).Scan(&held)
	if err == nil && !held {
		return fmt.Errorf("run %s: %w", l.Root, repute.ErrFenced)
	}
	return store.Failed("check lease", err)
}

// queuePhase stores the row of a phase.
func queuePhase(b *pgx.Batch, root string, o *PhaseOutcome) {
	p := &o.RunPhase
	b.Queue(`
		insert into run_phases (run_id, attempt, phase, status, result, error, started_at, ended_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (run_id, attempt, phase) do update set status = excluded.status, result = excluded.result, error =
			excluded.error,
			started_at = excluded.started_at, ended_at = excluded.ended_at`,
		o.Run, p.Attempt, int(p.Phase), string(p.Status), column.OrNull(p.Result), column.CleanText(p.Error), p.Started,
		p.Ended)
	b.Queue(`
		update runs set phase = $2, status = $3, awaiting = $4, reasons = coalesce($5::json, reasons),
			error = case when $6 = '' then error else $6 end, ended_at = case when $7 then clock_timestamp() end,
			started_at = coalesce(started_at, now()), held_until = case when $7 or $4 <> '' then '-infinity' else held_until end,
			lost_after = case when $7 or $4 <> '' then 'infinity' else lost_after end
		where id = $1`, o.Run, int(p.Phase), string(o.Status), o.Awaiting, o.Reasons, column.CleanText(o.Failure), o.Ended)
	if o.Awaiting != "" && o.Run != root { // the whole task waits with it
		b.Queue(`update runs set awaiting = $2, held_until = '-infinity', lost_after = 'infinity' where id = $1`,
			root, o.Awaiting)
	}
	if o.Task != "" && o.Run == root {
		b.Queue(`update tasks set status = $2, updated_at = now() where id = (select task_id from runs where id = $1) and status <> $2`, o.Run, string(o.Task))
	}
	for _, r := range o.Receipts {
		b.Queue(`
			insert into run_calls (run_id, step_id, key, kind, ref, summary, chain_id, domain, done, error, request, result,
				ended_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, true, $9, $10, $11, now())
			on conflict (run_id, step_id, key) where key <> '' do nothing`,
			o.Run, r.Step, r.Key, string(r.Kind), column.CleanText(r.Ref), column.CleanText(r.Summary), int64(r.Chain),
			column.CleanText(r.Domain), column.CleanText(r.Error), column.OrNull(r.Request), column.OrNull(r.Result))
	}
}
