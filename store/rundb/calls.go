package rundb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/walletdb"
)

// Charge is what a call uses of a task's limits.
type Charge struct {
	Steps, ToolCalls, Writes int
	GasWei                   string // decimal, empty: none
	// Tokens and Cost are of a call of a model: what it can use. CallOutcome corrects them.
	Tokens int64
	Cost   repute.Micros
	// MostOfRun is how many transactions, or calls that are none, the run itself may make.
	MostOfRun int
	// Once says that the call has an effect each time that it is made. The column uncertain stays true unless it failed
	// and surely had none.
	Once bool
}

// BudgetError is returned for a call that would exceed a limit.
type BudgetError struct {
	Limit      string // name of the limit as in a compute budget
	Used, Most string
}

// Error names the limit and the figures.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("budget: %s is used up (%s of %s)", e.Limit, e.Used, e.Most)
}

// Unwrap returns repute.ErrLimited.
func (e *BudgetError) Unwrap() error { return repute.ErrLimited }

// BeginCall stores a call before it is made and takes its charge, both or neither. Where the same
// call (run, step, key) is stored already, it returns that one with known set and charges nothing;
// a call with Done MUST NOT be made again. *BudgetError when a limit would be exceeded,
// repute.ErrFenced when another worker has the run.
func BeginCall(ctx context.Context, db *store.DB, l Lease, r repute.Receipt, c Charge,
	decisions ...Decision) (out repute.Receipt, known bool, err error) {
	err = l.inTx(ctx, db, "begin call", func(tx pgx.Tx) error {
		if r.Key != "" {
			if out, err = earlierCall(ctx, tx, r); err == nil {
				known = true
				return nil
			} else if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
		}
		if err := withinRun(ctx, tx, r, c.MostOfRun); err != nil {
			return err
		}
		if err := charge(ctx, tx, l.Root, c); err != nil {
			return err
		}
		if err := addDecisions(ctx, db, tx, l.Root, r.Run, decisions); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `
			insert into run_calls (run_id, step_id, key, kind, ref, summary, chain_id, domain, done, request, uncertain)
			values ($1, $2, $3, $4, $5, $6, $7, $8, false, $9, $10)
			returning id, run_id, step_id, key, kind, ref, summary, chain_id, domain, done, error, request, result, started_at, ended_at`,
			r.Run, r.Step, r.Key, string(r.Kind), column.CleanText(r.Ref), column.CleanText(r.Summary), int64(r.Chain),
			column.CleanText(r.Domain), column.OrNull(r.Request), c.Once)
		out, err = pgx.CollectExactlyOneRow(rows, scanCall)
		return err
	})
	return out, known, err
}

// withinRun returns *BudgetError for a call that exceeds the bounds of the run itself. Failed
// transactions of other attempts, whose keys begin with the attempt, do not count. The root run
// MUST be locked.
func withinRun(ctx context.Context, tx pgx.Tx, r repute.Receipt, most int) error {
	writes := r.Kind == repute.CallTransaction
	var used int
	if err := tx.QueryRow(ctx, `
		select count(*) from run_calls where run_id = $1 and (kind = $2) = $3 and kind <> all($4)
		and not (kind = $2 and done and error <> '' and split_part(key, '/', 1) <> split_part($5, '/', 1))`, r.Run, string(repute.CallTransaction), writes,
		[]string{string(repute.CallSubRun), string(repute.CallDryRun), string(repute.CallVerification),
			string(repute.CallRefused)}, r.Key).Scan(&used); err != nil || used < most {
		return err
	}
	limit := "the manifest's maxToolCalls"
	if writes {
		limit = "the manifest's maxOnchainWrites"
	}
	return &BudgetError{Limit: limit, Used: fmt.Sprint(used), Most: fmt.Sprint(most)}
}

// earlierCall returns the stored call with the same run, step and key.
func earlierCall(ctx context.Context, tx pgx.Tx, r repute.Receipt) (repute.Receipt, error) {
	rows, _ := tx.Query(ctx, selectCalls+`where run_id = $1 and step_id = $2 and key = $3`, r.Run, r.Step, r.Key)
	return pgx.CollectExactlyOneRow(rows, scanCall)
}

// charge takes from the limits of the root run, which MUST be locked.
func charge(ctx context.Context, tx pgx.Tx, root string, c Charge) error {
	if c.GasWei == "" {
		c.GasWei = "0"
	}
	tag, err := tx.Exec(ctx, `
		update runs set steps = steps + $2, tool_calls = tool_calls + $3, writes = writes + $4, gas = gas + $5::numeric,
			tokens = tokens + $6, cost = cost + $7
		where id = $1 and steps + $2 <= max_steps and tool_calls + $3 <= max_tool_calls and writes + $4 <= max_writes
		and (max_gas is null or gas + $5::numeric <= max_gas) and (max_tokens is null or tokens + $6 <= max_tokens)
		and (max_cost is null or cost + $7 <= max_cost)`, root, c.Steps, c.ToolCalls, c.Writes, c.GasWei, c.Tokens, int64(c.Cost))
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	var e BudgetError
	err = tx.QueryRow(ctx, `
		select limits.* from runs, lateral (values
			('maxSteps', steps::text, max_steps::text, steps + $2 > max_steps),
			('maxToolCalls', tool_calls::text, max_tool_calls::text, tool_calls + $3 > max_tool_calls),
			('maxOnchainWrites', writes::text, max_writes::text, writes + $4 > max_writes),
			('maxGasWei', gas::text, max_gas::text, gas + $5::numeric > max_gas),
			('maxTokens', tokens::text, max_tokens::text, tokens + $6 > max_tokens),
			('maxCostUsd', (cost / 1e6)::text, (max_cost / 1e6)::text, cost + $7 > max_cost)) limits(name, used, most, passed)
		where id = $1 and passed limit 1`, root, c.Steps, c.ToolCalls, c.Writes, c.GasWei, c.Tokens, int64(c.Cost)).Scan(&e.Limit, &e.Used, &e.Most, new(bool))
	if err != nil {
		return err
	}
	return &e
}

// BoundRun lowers the limits of a task's root run to most, where they are higher or unset.
// repute.ErrFenced when another worker has the run.
func BoundRun(ctx context.Context, db *store.DB, l Lease, most repute.Limits) error {
	return l.inTx(ctx, db, "bound run", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update runs set max_steps = least(max_steps, $2), max_tool_calls = least(max_tool_calls, $3), max_writes =
				least(max_writes, $4),
				max_runtime_ms = least(max_runtime_ms, $5), max_gas = least(max_gas, nullif($6, '')::numeric),
				max_tokens = least(max_tokens, nullif($7::bigint, 0)), max_cost = least(max_cost, nullif($8::bigint, 0))
			where id = $1`, l.Root, most.Steps, most.ToolCalls, most.Writes, most.Runtime.Milliseconds(), most.GasWei,
			most.Tokens, int64(most.Cost))
		return err
	})
}

// CallOutcome is how a stored call ended.
type CallOutcome struct {
	// Ref and Summary replace those of the call; empty leaves them as they are.
	Ref, Summary string
	// Error is why the call failed; empty when it succeeded.
	Error string
	// Uncertain says that the call may have had its effect although it failed, and that a repetition would have
	// another one: a retry of the task keeps the outcome.
	Uncertain bool
	// Result is what the call returned; null when it failed.
	Result json.RawMessage
	// GasWei is the difference between the gas that the call used and its charge, decimal and
	// signed; empty for none.
	GasWei string
	// Tokens and Cost are the same for a call of a model; 0 for none.
	Tokens int64
	Cost   repute.Micros
}

// EndCall stores how a call ended. repute.ErrFenced when another worker has the run.
// repute.ErrUnavailable when a failed transaction may still take effect, because it is signed and
// not known to have failed: then the call has not ended.
func EndCall(ctx context.Context, db *store.DB, l Lease, id int64, o CallOutcome) error {
	return l.inTx(ctx, db, "end call", func(tx pgx.Tx) error {
		return endCall(ctx, tx, l.Root, id, o)
	})
}

// endCall stores the outcome and adds the event.
func endCall(ctx context.Context, tx pgx.Tx, root string, id int64, o CallOutcome) error {
	if err := mayFail(ctx, tx, id, o); err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue(`
		update run_calls set done = true, ref = case when $2 = '' then ref else $2 end, summary = case when $3 = '' then
			summary else $3 end,
			error = $4, result = $5, uncertain = $6 or uncertain and $4 = '', ended_at = now() where id = $1`, id, column.CleanText(o.Ref),
		column.CleanText(o.Summary), column.CleanText(o.Error), column.OrNull(o.Result), o.Uncertain)
	if o.Tokens != 0 || o.Cost != 0 {
		b.Queue(`update runs set tokens = greatest(0, tokens + $2), cost = greatest(0, cost + $3) where id = $1`,
			root, o.Tokens, int64(o.Cost))
	}
	if o.GasWei != "" {
		b.Queue(`update runs set gas = greatest(0, gas + $2::numeric) where id = $1`, root, o.GasWei)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, selectCalls+`where id = $1`, id)
	r, err := pgx.CollectExactlyOneRow(rows, scanCall)
	if err != nil {
		return err
	}
	return addEvents(ctx, tx, root, callEvent(id, &r))
}

// mayFail returns repute.ErrUnavailable for a transaction that failed to be sent and may still take
// effect.
func mayFail(ctx context.Context, tx pgx.Tx, id int64, o CallOutcome) error {
	if o.Error == "" {
		return nil
	}
	var intent string
	err := tx.QueryRow(ctx, `select run_id || '/' || step_id || '/' || key from run_calls where id = $1 for update`,
		id).Scan(&intent)
	if err != nil {
		return err
	}
	return walletdb.WithoutEffect(ctx, tx, intent)
}

// AddModelText stores a part of the text that a model writes in a step, as an event model.text.
// repute.ErrFenced when another worker has the run.
func AddModelText(ctx context.Context, db *store.DB, l Lease, run, step string, turn int, text string) error {
	return l.inTx(ctx, db, "add a model's text", func(tx pgx.Tx) error {
		return addEvents(ctx, tx, l.Root, newEvent(run, "model.text",
			map[string]any{"step": step, "turn": turn, "text": column.CleanText(text)}))
	})
}

// Step is a step of a plan that has begun.
type Step struct {
	// ID is the step's name in the plan.
	ID string
	// Status is StepRunning, StepCompleted or StepFailed.
	Status string
	// Result is the output of a completed step.
	Result json.RawMessage
	// Error is why the step failed; empty when it did not.
	Error string
}

// Statuses of steps.
const (
	StepRunning   = "running"
	StepCompleted = "completed"
	StepFailed    = "failed"
)

// BeginStep takes a step from the limits the first time; later it returns what is stored of it.
func BeginStep(ctx context.Context, db *store.DB, l Lease, run, step string) (out Step, err error) {
	err = l.inTx(ctx, db, "begin step", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx,
			`insert into run_steps (run_id, step_id, status) values ($1, $2, $3) on conflict do nothing`, run, step,
			StepRunning)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			out.ID = step
			return tx.QueryRow(ctx,
				`select status, result, error from run_steps where run_id = $1 and step_id = $2`, run,
				step).Scan(&out.Status, &out.Result, &out.Error)
		}
		if err := charge(ctx, tx, l.Root, Charge{Steps: 1}); err != nil {
			return err
		}
		out = Step{ID: step, Status: StepRunning}
		return addEvents(ctx, tx, l.Root, newEvent(run, "step.started", map[string]any{"step": step}))
	})
	return out, err
}

// EndStep stores the result of a step.
func EndStep(ctx context.Context, db *store.DB, l Lease, run string, s Step) error {
	return l.inTx(ctx, db, "end step", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx,
			`update run_steps set status = $3, result = $4, error = $5, ended_at = now() where run_id = $1 and step_id = $2`,
			run, s.ID, s.Status, column.OrNull(s.Result), column.CleanText(s.Error)); err != nil {
			return err
		}
		return addEvents(ctx, tx, l.Root, newEvent(run, "step.finished",
			map[string]any{"step": s.ID, "status": s.Status, "error": s.Error}))
	})
}

// Steps returns the steps of a run that have begun.
func Steps(ctx context.Context, db *store.DB, run string) ([]Step, error) {
	rows, _ := db.Readers().Query(ctx,
		`select step_id, status, result, error from run_steps where run_id = $1 order by started_at, step_id`,
		column.CleanText(run))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Step])
	return list, store.Failed("read steps", err)
}

// SubRun creates the run of a step by another agent, or returns the stored one.
func SubRun(ctx context.Context, db *store.DB, l Lease, r repute.Run) (w Work, err error) {
	r.Root = l.Root
	err = l.inTx(ctx, db, "begin sub-run", func(tx pgx.Tx) error {
		if err := insertRun(ctx, tx, r); err != nil {
			return err
		}
		var id string
		if err := tx.QueryRow(ctx, `select id from runs where parent_id = $1 and parent_step = $2`, r.Parent,
			r.ParentStep).Scan(&id); err != nil {
			return err
		}
		w, err = readWork(ctx, tx, id)
		return err
	})
	return w, err
}

// LastCall returns the newest call of a run's step by one of several keys; known is false when
// there is none.
func LastCall(ctx context.Context, db *store.DB, run, step string, keys []string) (out repute.Receipt, known bool,
	err error) {
	rows, _ := db.Pool().Query(ctx,
		selectCalls+`where run_id = $1 and step_id = $2 and key = any($3) order by id desc limit 1`, run, step, keys)
	out, err = pgx.CollectExactlyOneRow(rows, scanCall)
	if errors.Is(err, pgx.ErrNoRows) {
		return out, false, nil
	}
	return out, err == nil, store.Failed("read call", err)
}

// JournaledTransaction is a transaction that a run of a task has stored.
type JournaledTransaction struct {
	// Run is the id of the run.
	Run string
	// Call is the step and the key of the call, separated by a slash.
	Call string
	// Request is the transaction as the agent asked for it.
	Request json.RawMessage
}

// TaskTransactions returns the transactions that the runs of a task have stored, without failed
// ones.
func TaskTransactions(ctx context.Context, db *store.DB, task string) ([]JournaledTransaction, error) {
	rows, _ := db.Pool().Query(ctx,
		`select c.run_id, c.step_id || '/' || c.key, c.request from run_calls c join runs r on r.id = c.run_id where r.task_id = $1 and c.kind = $2 and (not c.done or c.error = '')`,
		task, string(repute.CallTransaction))
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[JournaledTransaction])
	return list, store.Failed("read transactions", err)
}

// maxRefused is how many refusals of a run are stored, because an agent may ask without end.
const maxRefused = 200

// RefuseCall stores that a call was refused: its receipt, event and decision. Equal ones are stored
// once, and of a run the first maxRefused. repute.ErrFenced as in BeginCall.
func RefuseCall(ctx context.Context, db *store.DB, l Lease, r repute.Receipt, d Decision) (id int64, err error) {
	err = l.inTx(ctx, db, "store a refused call", func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			insert into run_calls (run_id, step_id, key, kind, ref, summary, chain_id, domain, done, error, request, ended_at)
			select $1, $2, $3, $4, $5, $6, $7, $8, true, $9, $10, now()
			where (select count(*) from run_calls where run_id = $1 and kind = $4) < $11
			on conflict (run_id, step_id, key) where key <> '' do nothing returning id`,
			r.Run, r.Step, r.Key, string(r.Kind), column.CleanText(r.Ref), column.CleanText(r.Summary), int64(r.Chain),
			column.CleanText(r.Domain), column.CleanText(r.Error), column.OrNull(r.Request), maxRefused).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return tx.QueryRow(ctx,
				`select coalesce(max(id), 0) from run_calls where run_id = $1 and step_id = $2 and key = $3`, r.Run,
				r.Step,
				r.Key).Scan(&id)
		}
		if err != nil {
			return err
		}
		if err := addDecision(ctx, db, tx, l.Root, r.Run, d); err != nil {
			return err
		}
		return addEvents(ctx, tx, l.Root, callEvent(id, &r))
	})
	return id, err
}

// callEvent returns the event of a call.
func callEvent(id int64, r *repute.Receipt) repute.RunEvent {
	return newEvent(r.Run, "call", map[string]any{"receipt": id, "step": r.Step, "type": r.Kind, "ref": r.Ref,
		"summary": r.Summary, "error": r.Error})
}

// SentWithTopic returns the results of transactions that runs of an agent sent on a chain and whose
// stored logs hold a topic.
func SentWithTopic(ctx context.Context, db *store.DB, slug string, chainID uint64,
	topic common.Hash) ([]json.RawMessage, error) {
	rows, _ := db.Pool().Query(ctx, `
		select c.result from run_calls c join runs r on r.id = c.run_id
		where r.slug = $1 and c.kind = $2 and c.chain_id = $3 and c.done and c.error = ''
		and position($4 in convert_from(decode(c.result->>'result', 'base64'), 'UTF8')) > 0`,
		slug, string(repute.CallTransaction), int64(chainID), topic.Hex())
	list, err := pgx.CollectRows(rows, pgx.RowTo[json.RawMessage])
	return list, store.Failed("read transactions", err)
}
