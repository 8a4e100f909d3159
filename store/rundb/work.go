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
)

// Lease is the right to write what a root run and the runs below it do. A worker that
// lost it writes nothing more.
type Lease struct {
	Root  string
	Fence int64
}

// Work is a run as whoever works on it finds it.
type Work struct {
	repute.Run
	Task   repute.Task
	Phases map[repute.Phase]repute.RunPhase // of the present attempt
}

// countTime brings the time that a held root run was worked on up to date.
const countTime = `runtime_ms = greatest(runtime_ms, (extract(epoch from clock_timestamp() - counted_from) * 1000)::bigint)`

// TakeRun gives a root run to the caller for a while; HoldRuns extends it. It is
// repute.ErrHeld while somebody else has it, and repute.ErrConflict when the run has
// ended or waits for a person: there is nothing to do then.
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

// whyNot tells why a run cannot be taken.
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

func readWork(ctx context.Context, tx pgx.Tx, id string) (w Work, err error) {
	rows, err := tx.Query(ctx, selectRuns+`where r.id = $1`, id)
	if err != nil {
		return w, err
	}
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

// HoldRuns keeps root runs for another while, counts their time up to now, and lists those that are still the
// caller's, with whether somebody wants them cancelled.
func HoldRuns(ctx context.Context, db *store.DB, leases []Lease, hold time.Duration) ([]Held, error) {
	roots, fences := make([]string, len(leases)), make([]int64, len(leases))
	for i, l := range leases {
		roots[i], fences[i] = l.Root, l.Fence
	}
	rows, err := db.Pool().Query(ctx, `
		update runs r set held_until = case when awaiting = '' then clock_timestamp() + $3 else held_until end,
			lost_after = case when awaiting = '' then clock_timestamp() + $3 else lost_after end, `+countTime+`
		from unnest($1::text[], $2::bigint[]) l(root, fence)
		where r.id = l.root and r.fence = l.fence and r.ended_at is null returning r.id, r.fence, r.cancel`, roots, fences, hold)
	if err != nil {
		return nil, store.Failed("hold runs", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h Held, err error) {
		return h, row.Scan(&h.Root, &h.Fence, &h.Cancel)
	})
	return list, store.Failed("hold runs", err)
}

// ReleaseRun gives a run that is not done back: whoever comes next has it at once.
func ReleaseRun(ctx context.Context, db *store.DB, l Lease) error {
	_, err := db.Pool().Exec(ctx, `
		update runs set held_until = '-infinity', lost_after = clock_timestamp() + interval '5 seconds', `+countTime+`
		where id = $1 and fence = $2 and ended_at is null and awaiting = ''`, l.Root, l.Fence)
	return store.Failed("release run", err)
}

// jobWait is how long a queued run may go untaken before somebody looks for its job.
const jobWait = "15 seconds"

// RequeueLost queues the runs whose holder is gone, or whose job is, at most so many, and
// tells how many. A job dies with its worker between being fetched and taking the run.
func RequeueLost(ctx context.Context, db *store.DB, most int, queue func(tx pgx.Tx, roots []string) error) (n int, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "requeue lost runs", func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			with lost as (
				update runs set lost_after = clock_timestamp() + interval '`+jobWait+`' where id in (
					select id from runs where lost_after < clock_timestamp() and ended_at is null and awaiting = ''
					order by lost_after limit $1 for update skip locked)
				returning id)
			select id from lost where id not in (
				select args->>'root' from river_job where kind = 'run' and state in ('available', 'scheduled', 'retryable'))`, most)
		if err != nil {
			return err
		}
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
	Run string
	repute.RunPhase
	Status    repute.RunStatus  // of the run from now on
	Task      repute.TaskStatus // of the task from now on, empty: as it was
	Awaiting  string
	Ended     bool
	Reasons   json.RawMessage // nil: as they were
	Failure   string          // of the run, empty: as it was
	Receipts  []repute.Receipt
	Decisions []Decision
	Events    []repute.RunEvent
}

// SavePhase stores the outcome of a phase in one transaction, together with what also
// does. repute.ErrFenced when somebody else has the run now: nothing is stored.
func SavePhase(ctx context.Context, db *store.DB, l Lease, o PhaseOutcome, also func(pgx.Tx) error) error {
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("save phase %s of run %s", o.Phase, o.Run), func(tx pgx.Tx) error {
		if err := lockRoot(ctx, tx, l); err != nil {
			return err
		}
		b := &pgx.Batch{}
		queuePhase(b, l, &o)
		var left []repute.RunEvent
		if o.Ended && o.Run == l.Root {
			queueEndBelow(b, l.Root, below(o.Status), "the run above ended first", &left)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if err := addDecisions(ctx, db, tx, l.Root, o.Run, o.Decisions); err != nil {
			return err
		}
		if err := addEvents(ctx, tx, l, append(left, o.Events...)); err != nil {
			return err
		}
		if o.Awaiting != "" { // nobody would find the cancellation while it waits
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

// DelayPhase notes that a phase of a run could not be done and is tried again, once for each
// attempt, as event phase.delayed. It gives the time of the first such try and that of now, by
// the database's clock. repute.ErrFenced as SavePhase.
func DelayPhase(ctx context.Context, db *store.DB, l Lease, run string, p repute.Phase, attempt int, reason string) (since, now time.Time, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("note the delay of run %s", run), func(tx pgx.Tx) error {
		if err := lockRoot(ctx, tx, l); err != nil {
			return err
		}
		first := func() error {
			return tx.QueryRow(ctx, `
				select at, clock_timestamp() from run_events
				where root_id = $1 and run_id = $2 and kind = 'phase.delayed' and data->>'phase' = $3 and (data->>'attempt')::int = $4
				order by number limit 1`, l.Root, run, p.String(), attempt).Scan(&since, &now)
		}
		err := first()
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if err := addEvents(ctx, tx, l, []repute.RunEvent{{Run: run, Kind: "phase.delayed",
			Data: mustJSON(map[string]any{"phase": p.String(), "attempt": attempt, "error": reason})}}); err != nil {
			return err
		}
		return first()
	})
	return since.UTC(), now.UTC(), err
}

// below is what becomes of a run that is not done when the one above it ends.
func below(root repute.RunStatus) repute.RunStatus {
	if root == repute.RunCancelled {
		return repute.RunCancelled
	}
	return repute.RunFailed
}

// lockRoot makes sure that nobody else works on a root run until the transaction ends, and
// counts the run's time up to now.
func lockRoot(ctx context.Context, tx pgx.Tx, l Lease) error {
	tag, err := tx.Exec(ctx, `update runs set `+countTime+` where id = $1 and fence = $2 and ended_at is null`, l.Root, l.Fence)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("run %s: %w", l.Root, repute.ErrFenced)
	}
	return err
}

func queuePhase(b *pgx.Batch, l Lease, o *PhaseOutcome) {
	p := &o.RunPhase
	b.Queue(`
		insert into run_phases (run_id, attempt, phase, status, result, error, started_at, ended_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (run_id, attempt, phase) do update set status = excluded.status, result = excluded.result, error = excluded.error,
			started_at = excluded.started_at, ended_at = excluded.ended_at`,
		o.Run, p.Attempt, int(p.Phase), string(p.Status), store.OrNull(p.Result), store.CleanText(p.Error), p.Started, p.Ended)
	b.Queue(`
		update runs set phase = $2, status = $3, awaiting = $4, reasons = coalesce($5::json, reasons),
			error = case when $6 = '' then error else $6 end, ended_at = case when $7 then clock_timestamp() end,
			started_at = coalesce(started_at, now()), held_until = case when $7 or $4 <> '' then '-infinity' else held_until end,
			lost_after = case when $7 or $4 <> '' then 'infinity' else lost_after end
		where id = $1`, o.Run, int(p.Phase), string(o.Status), o.Awaiting, o.Reasons, store.CleanText(o.Failure), o.Ended)
	if o.Awaiting != "" && o.Run != l.Root { // the whole task waits with it
		b.Queue(`update runs set awaiting = $2, held_until = '-infinity', lost_after = 'infinity' where id = $1`, l.Root, o.Awaiting)
	}
	if o.Task != "" && o.Run == l.Root {
		b.Queue(`update tasks set status = $2, updated_at = now() where id = (select task_id from runs where id = $1) and status <> $2`, o.Run, string(o.Task))
	}
	for _, r := range o.Receipts {
		b.Queue(`
			insert into run_calls (run_id, step_id, key, kind, ref, summary, chain_id, domain, done, error, request, result, ended_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, true, $9, $10, $11, now())
			on conflict (run_id, step_id, key) where key <> '' do nothing`,
			o.Run, r.Step, r.Key, string(r.Kind), store.CleanText(r.Ref), store.CleanText(r.Summary), int64(r.Chain), store.CleanText(r.Domain), store.CleanText(r.Error), store.OrNull(r.Request), store.OrNull(r.Result))
	}
}
