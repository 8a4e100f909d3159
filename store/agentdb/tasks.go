package agentdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// PaymentOfTask returns the payment of an execution that a client's protocol named as a task, and the
// entry of the execution. repute.ErrNotFound where no paid execution has this name.
func PaymentOfTask(ctx context.Context, db *store.DB, agent, task string) (p Payment, e Entry, err error) {
	rows, _ := db.Pool().Query(ctx, selectEntries+`where agent = $1 and kind = 'execution' and detail->>'task' = $2
		order by at desc, number desc limit 1`, agent, column.CleanText(task))
	if e, err = pgx.CollectExactlyOneRow(rows, scanEntry); err == nil {
		p, err = scan(db.Pool().QueryRow(ctx,
			`select `+columns+` from agent_payments where agent = $1 and request_id = $2`,
			agent, e.RequestID))
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return p, e, &repute.MissingError{What: "task", Why: "is no paid execution, or was dropped"}
	}
	return p, e, store.Failed("read task", err)
}
