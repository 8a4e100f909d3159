package rundb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// selectCalls begins the statements that scanCall reads.
const selectCalls = `select id, run_id, step_id, key, kind, ref, summary, chain_id, domain, done, error, request, result, started_at, ended_at from run_calls `

// scanCall reads a row of selectCalls.
func scanCall(row pgx.CollectableRow) (r repute.Receipt, err error) {
	var ended *time.Time
	err = row.Scan(&r.ID, &r.Run, &r.Step, &r.Key, &r.Kind, &r.Ref, &r.Summary, &r.Chain, &r.Domain, &r.Done, &r.Error,
		&r.Request, &r.Result, &r.Started, &ended)
	r.Started, r.Ended = r.Started.UTC(), column.TimeOf(ended)
	return r, err
}

// shortCalls returns the columns of calls without requests, and with the given SQL instead of
// results: a run may have received megabytes from each of its calls.
func shortCalls(result string) string {
	return `select id, run_id, step_id, key, kind, ref, summary, chain_id, domain, done, error, null::json, ` + result +
		`, started_at, ended_at from run_calls `
}

// Receipts returns the calls of a run in order, without requests, and with the results of
// transactions only.
func Receipts(ctx context.Context, db *store.DB, run string) ([]repute.Receipt, error) {
	return receipts(ctx, db,
		shortCalls(`case when kind = '`+string(repute.CallTransaction)+`' then result end`)+
			`where run_id = $1 order by id`,
		column.CleanText(run))
}

// TaskReceipts returns the calls of all runs of a task, with the results of transactions.
func TaskReceipts(ctx context.Context, db *store.DB, task string) ([]repute.Receipt, error) {
	return receipts(ctx, db,
		shortCalls(`case when kind = '`+string(repute.CallTransaction)+`' then result end`)+
			`where run_id in (select r.id from runs r where r.task_id = $1) order by id`,
		column.CleanText(task))
}

// ReceiptPage returns the first calls of a run after one, without requests and results.
func ReceiptPage(ctx context.Context, db *store.DB, run string, after int64, most int) ([]repute.Receipt, error) {
	return receipts(ctx, db, shortCalls(`null::json`)+`where run_id = $1 and id > $2 order by id limit $3`,
		column.CleanText(run), after, most)
}

// ReceiptsUntil returns the first calls that had ended at a time, without requests and results, and
// how many there are in all.
func ReceiptsUntil(ctx context.Context, db *store.DB, run string, at time.Time, most int) (list []repute.Receipt,
	all int, err error) {
	const ended = `where run_id = $1 and done and ended_at <= $2`
	if list, err = receipts(ctx, db, shortCalls(`null::json`)+ended+` order by id limit $3`, column.CleanText(run), at,
		most); err != nil || len(list) < most {
		return list, len(list), err
	}
	err = db.Readers().QueryRow(ctx, `select count(*) from run_calls `+ended, column.CleanText(run), at).Scan(&all)
	return list, all, store.Failed("count receipts", err)
}

// Receipt returns one call of a run with request and result. repute.ErrNotFound when there is none.
func Receipt(ctx context.Context, db *store.DB, run string, id int64) (repute.Receipt, error) {
	list, err := receipts(ctx, db, selectCalls+`where run_id = $1 and id = $2`, column.CleanText(run), id)
	if err == nil && len(list) == 0 {
		err = &repute.MissingError{What: fmt.Sprintf("receipt %d of run %s", id, run), Why: "is not there"}
	}
	if err != nil {
		return repute.Receipt{}, err
	}
	return list[0], nil
}

// receipts returns the calls that a statement selects.
func receipts(ctx context.Context, db *store.DB, sql string, args ...any) ([]repute.Receipt, error) {
	rows, _ := db.Readers().Query(ctx, sql, args...)
	list, err := pgx.CollectRows(rows, scanCall)
	return list, store.Failed("read receipts", err)
}
