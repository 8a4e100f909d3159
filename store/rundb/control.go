package rundb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// CancelTask cancels a task. One that no worker has ends at once; otherwise the worker sees the
// cancellation when it next extends its claim (HoldRuns). repute.ErrConflict when the task has
// ended.
func CancelTask(ctx context.Context, db *store.DB, id, by, reason string) error {
	return db.InTx(ctx, pgx.TxOptions{}, "cancel task", func(tx pgx.Tx) error {
		root, err := lockTask(ctx, tx, id)
		if err != nil {
			return err
		}
		cancellation := column.CleanText(strings.TrimSuffix(fmt.Sprintf("by %s: %s", by, reason), ": "))
		var idle bool
		if err := tx.QueryRow(ctx,
			`update runs set cancel = $2 where id = $1 returning awaiting <> '' or held_until <= clock_timestamp()`, root,
			cancellation).Scan(&idle); err != nil {
			return err
		}
		requested := newEvent(root, "cancel.requested", map[string]any{"by": by, "reason": reason})
		if err := addEvents(ctx, tx, root, requested); err != nil || !idle {
			return err
		}
		return endCanceled(ctx, tx, root)
	})
}

// endCanceled ends the task of a canceled root run that no worker has.
func endCanceled(ctx context.Context, tx pgx.Tx, root string) error {
	var task, cancellation string
	var attempt int
	if err := tx.QueryRow(ctx, `select task_id, cancel, attempt from runs where id = $1`, root).Scan(&task,
		&cancellation,
		&attempt); err != nil || cancellation == "" {
		return err
	}
	ended, err := endIdle(ctx, tx, root, cancellation)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update tasks set status = $2, updated_at = now() where id = $1`, task,
		string(repute.TaskCancelled)); err != nil {
		return err
	}
	finished := newEvent(root, runFinished, map[string]any{"status": repute.RunCancelled, "attempt": attempt})
	return addEvents(ctx, tx, root, append(ended, finished)...)
}

// endIdle ends a root run that no worker has, with the runs below it, and returns their events.
func endIdle(ctx context.Context, tx pgx.Tx, root, cancellation string) (below []repute.RunEvent, err error) {
	b := &pgx.Batch{}
	b.Queue(`
		update runs set status = $2, error = $3, awaiting = '', ended_at = clock_timestamp(), lost_after = 'infinity',
			fence = fence + 1
		where id = $1`, root, string(repute.RunCancelled), "cancelled "+cancellation)
	queueEndBelow(b, root, repute.RunCancelled, "cancelled "+cancellation, &below)
	return below, tx.SendBatch(ctx, b).Close()
}

// queueEndBelow ends the runs below a root run that ends without having waited for them, and adds
// an event for each.
func queueEndBelow(b *pgx.Batch, root string, status repute.RunStatus, why string, events *[]repute.RunEvent) {
	b.Queue(`
		update runs set status = $2, error = case when error = '' then $3 else error end, awaiting = '', ended_at =
			clock_timestamp()
		where task_id = (select task_id from runs where id = $1) and id <> $1 and ended_at is null returning id, attempt,
			error`, root, string(status), column.CleanText(why)).Query(func(rows pgx.Rows) (err error) {
		*events, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (repute.RunEvent, error) {
			var run, text string
			var attempt int
			err := row.Scan(&run, &attempt, &text)
			return newEvent(run, runFinished, map[string]any{"status": status, "attempt": attempt, "error": text}), err
		})
		return err
	})
}

// runFinished is the kind of the last event of a run's attempt.
const runFinished = "run.finished"

// lockTask locks and returns the root run of a task that has not ended.
func lockTask(ctx context.Context, tx pgx.Tx, id string) (root string, err error) {
	var status repute.RunStatus
	err = tx.QueryRow(ctx, `select id, status from runs where task_id = $1 and parent_id is null for update`,
		column.CleanText(id)).Scan(&root, &status)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", repute.Unknown("task %q", id)
	}
	if err == nil && status.Ended() {
		err = repute.Conflict("task %s is %s already", id, status)
	}
	return root, err
}

// Approval is the answer of a person.
type Approval struct {
	// Subject is "policy", or the key of a call.
	Subject string
	// Approved is false when the person refused.
	Approved bool
	// By names the person, as the caller authenticated.
	By string
	// Reason is the person's text; it may be empty.
	Reason string
	// At is when the answer was stored.
	At time.Time
}

// Approve answers subject a of what a run waits for and queues its task with queue, in one
// transaction. repute.ErrConflict when the run waits for nothing, or not for that subject.
func Approve(ctx context.Context, db *store.DB, run string, a Approval,
	queue func(tx pgx.Tx, root string) error) error {
	return db.InTx(ctx, pgx.TxOptions{}, "approve run", func(tx pgx.Tx) error {
		var root, awaiting string
		var attempt int
		err := tx.QueryRow(ctx, `
			select r.root_id, r.awaiting, r.attempt from runs r join runs o on o.id = r.root_id where r.id = $1 for update of
				o`, column.CleanText(run)).Scan(&root, &awaiting, &attempt)
		if errors.Is(err, pgx.ErrNoRows) {
			return repute.Unknown("run %q", run)
		}
		if err != nil {
			return err
		}
		if awaiting == "" {
			return repute.Conflict("no approval of run %s is pending", run)
		}
		subject := column.CleanText(a.Subject)
		asked, err := awaitedDecision(ctx, tx, run, subject, attempt)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			insert into run_approvals (run_id, attempt, subject, approved, by, reason) values ($1, $2, $3, $4, $5, $6)`,
			run, attempt, subject, a.Approved, column.CleanText(a.By), column.CleanText(a.Reason)); err != nil {
			return err
		}
		if err := addDecisions(ctx, db, tx, root, run, []Decision{answerTo(&asked, &a)}); err != nil {
			return err
		}
		// A waiting run and its root run wait together, so both continue.
		if _, err := tx.Exec(ctx, `update runs set awaiting = '', fence = fence + 1, held_until = '-infinity',
			lost_after = case when id = $2 then clock_timestamp() + interval '`+jobWait+`' else 'infinity' end where id in ($1, $2)`, run, root); err != nil {
			return err
		}
		given := newEvent(run, "approval.given", map[string]any{"subject": subject, "approved": a.Approved, "by": a.By,
			"reason": a.Reason})
		if err := addEvents(ctx, tx, root, given); err != nil {
			return err
		}
		return queue(tx, root)
	})
}

// awaitedDecision returns the last decision that left a subject to a person. repute.ErrConflict
// when there is none, or a person has answered.
func awaitedDecision(ctx context.Context, tx pgx.Tx, run, subject string, attempt int) (d repute.RunDecision,
	err error) {
	rows, _ := tx.Query(ctx, selectDecisions+`
		where d.run_id = $1 and d.attempt = $2 and d.subject = $3 and d.effect = 'require_approval'
		and not exists (select from run_approvals where run_id = $1 and attempt = $2 and subject = $3) order by d.id desc
			limit 1`, run, attempt, subject)
	if d, err = pgx.CollectExactlyOneRow(rows, scanDecision); errors.Is(err, pgx.ErrNoRows) {
		err = repute.Conflict("run %s does not wait for an answer about %q: its awaited, which run show prints, lists what it waits for", run, subject)
	}
	return d, err
}

// answerTo returns the decision that a person's answer adds to the chain.
func answerTo(asked *repute.RunDecision, a *Approval) Decision {
	effect := "deny"
	if a.Approved {
		effect = "allow"
	}
	return Decision{Phase: asked.Phase, Kind: repute.DecisionApproval, Subject: asked.Subject, Effect: effect,
		Reasons: asked.Reasons, Policy: asked.Policy,
		Input: mustJSON(AnswerInput{Answers: asked.Number, Approved: a.Approved, By: column.CleanText(a.By),
			Reason: column.CleanText(a.Reason)})}
}

// AnswerInput is the input of a decision of kind approval.
type AnswerInput struct {
	Answers  int64  `json:"answers"` // number of the decision that asked
	Approved bool   `json:"approved"`
	By       string `json:"by"`
	Reason   string `json:"reason"`
}

// Awaited returns the decisions of a waiting run's attempt that people have not answered, ordered
// by subject; none when the run does not wait.
func Awaited(ctx context.Context, db *store.DB, run string) ([]Decision, error) {
	rows, _ := db.Pool().Query(ctx, `
		select distinct on (d.subject) d.subject, d.effect, d.reasons, d.policy, d.input from run_decisions d join runs r
			on r.id = d.run_id and r.attempt = d.attempt
		where d.run_id = $1 and r.awaiting <> '' and d.effect = 'require_approval'
		and not exists (select from run_approvals a where (a.run_id, a.attempt, a.subject) = (d.run_id, d.attempt, d.subject))
		order by d.subject, d.id desc`, column.CleanText(run))
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Decision, err error) {
		var hash []byte
		err = row.Scan(&d.Subject, &d.Effect, &d.Reasons, &hash, &d.Input)
		copy(d.Policy[:], hash)
		return d, err
	})
	return list, store.Failed("read awaited", err)
}

// Approvals returns the answers of people about a run's attempt, by subject.
func Approvals(ctx context.Context, db *store.DB, run string, attempt int) (map[string]Approval, error) {
	rows, _ := db.Pool().Query(ctx,
		`select subject, approved, by, reason, at from run_approvals where run_id = $1 and attempt = $2`, run, attempt)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Approval])
	out := map[string]Approval{}
	for _, a := range list {
		out[a.Subject] = a
	}
	return out, store.Failed("read approvals", err)
}

// RetryTask begins another attempt of a failed task from a phase on; the results of earlier phases
// stay. repute.ErrConflict when the task did not fail, or failed before that phase.
func RetryTask(ctx context.Context, db *store.DB, id string, from repute.Phase, by string,
	queue func(tx pgx.Tx, root string) error) error {
	return db.InTx(ctx, pgx.TxOptions{}, "retry task", func(tx pgx.Tx) error {
		var root string
		var status repute.RunStatus
		var attempt int
		err := tx.QueryRow(ctx,
			`select id, status, attempt from runs where task_id = $1 and parent_id is null for update`,
			column.CleanText(id)).Scan(&root, &status, &attempt)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return repute.Unknown("task %q", id)
		case err != nil:
			return err
		case status != repute.RunFailed && status != repute.RunCancelled:
			return repute.Conflict("task %s is %s: only failed and cancelled ones are retried", id, status)
		}
		if from == 0 {
			if from, err = failedPhase(ctx, tx, root, attempt); err != nil {
				return err
			}
		}
		var done int
		if err := tx.QueryRow(ctx,
			`select count(*) from run_phases where run_id = $1 and attempt = $2 and phase < $3 and status = 'ok'`, root,
			attempt, int(from)).Scan(&done); err != nil {
			return err
		}
		if done != int(from)-1 {
			return repute.Conflict("task %s did not get to phase %s: retry from an earlier one", id, from)
		}
		if from <= repute.PhasePlan {
			if err := dropPlan(ctx, tx, id, root, attempt); err != nil {
				return err
			}
		}
		if err := nextAttempt(ctx, tx, id, root, from); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update tasks set status = $2, updated_at = now() where id = $1`, id,
			string(repute.TaskPending)); err != nil {
			return err
		}
		retried := newEvent(root, "run.retried", map[string]any{"from": from.String(), "by": by})
		if err := addEvents(ctx, tx, root, retried); err != nil {
			return err
		}
		return queue(tx, root)
	})
}

// dropPlan deletes steps and sub-runs of the current plan, so that another one can be made. repute.ErrConflict when a
// transaction or a payment of the plan was sent, or a call was made that has an effect each time: another plan has
// sub-runs with other ids, so that the stored call is not found and made again.
func dropPlan(ctx context.Context, tx pgx.Tx, task, root string, attempt int) error {
	var sent int
	if err := tx.QueryRow(ctx, `
		select count(*) from run_calls c join runs r on r.id = c.run_id where r.task_id = $1 and (c.uncertain or
			c.kind = any($2) and (not c.done or c.error = ''
			or exists (select from intents i where i.id = c.run_id || '/' || c.step_id || '/' || c.key and i.state not in
				('reverted', 'failed'))))`,
		task, []string{string(repute.CallTransaction), string(repute.CallPayment)}).Scan(&sent); err != nil {
		return err
	}
	if sent > 0 {
		return repute.Conflict("task %s has made %d transactions, payments and calls that have an effect each time, and another plan might make them "+
			"again: retry from execute, or ask for another task", task, sent)
	}
	b := &pgx.Batch{}
	b.Queue(`delete from run_steps where run_id = $1`, root)
	b.Queue(`update runs set parent_step = 'attempt ' || $2::int || ': ' || parent_step where parent_id = $1`, root,
		attempt)
	return tx.SendBatch(ctx, b).Close()
}

// failedPhase returns the first phase that is not ok. When all are ok it is the last but one before
// the record.
func failedPhase(ctx context.Context, tx pgx.Tx, run string, attempt int) (p repute.Phase, err error) {
	err = tx.QueryRow(ctx, `
		select coalesce(min(n), $3) from generate_series(1, $3) n
		where not exists (select from run_phases where run_id = $1 and attempt = $2 and phase = n and status = 'ok')`, run, attempt, int(repute.PhaseRecord)-1).Scan(&p)
	return p, err
}

// nextAttempt copies the phases before from into the next attempt: of the root run and, where
// Execute is repeated, of the failed runs below it. What these completed stays completed.
func nextAttempt(ctx context.Context, tx pgx.Tx, task, root string, from repute.Phase) error {
	b := &pgx.Batch{}
	b.Queue(`
		insert into run_phases (run_id, attempt, phase, status, result, error, started_at, ended_at)
		select p.run_id, p.attempt + 1, p.phase, p.status, p.result, p.error, p.started_at, p.ended_at from run_phases p
			join runs r on r.id = p.run_id and r.attempt = p.attempt
		where r.task_id = $4 and ((r.id = $1 and p.phase < $2) or (r.id <> $1 and $2::int > $5::int and r.status <>
			'completed' and p.phase < $3 and p.status = 'ok'))`, root, int(from), int(repute.PhaseTrust), task, int(repute.PhasePlan))
	b.Queue(`delete from run_steps where status <> 'completed' and run_id in (select id from runs where task_id = $1)`,
		task)
	// A payment without an end stays: it is asked for again, as it was signed. So does a call that may have had its
	// effect: a person is asked before it is made again, or has refused it.
	b.Queue(`delete from run_calls where (not done and kind <> $3 or error <> '') and not uncertain and kind = any($2) and run_id in (select id from runs where task_id = $1)`, task,
		[]string{string(repute.CallTool), string(repute.CallModel), string(repute.CallHTTP), string(repute.CallPayment),
			string(repute.CallChain),
			string(repute.CallSubRun)}, string(repute.CallPayment))
	b.Queue(`
		update runs set attempt = attempt + 1, status = 'pending', phase = case when id = $1 then $2::int - 1 else 0 end,
			awaiting = '', cancel = '', error = '',
			reasons = '[]', ended_at = null, fence = fence + 1, held_until = '-infinity', runtime_ms = 0,
			lost_after = case when id = $1 then clock_timestamp() + interval '`+jobWait+`' else 'infinity' end
		where task_id = $3 and (id = $1 or $2::int > $4::int and status <> 'completed')`, root, int(from), task, int(repute.PhasePlan))
	return tx.SendBatch(ctx, b).Close()
}
