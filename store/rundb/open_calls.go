package rundb

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/walletdb"
)

// OpenCall is a stored transaction of a run that has ended.
type OpenCall struct {
	repute.Receipt
	Agent, Task, Root string
}

// OpenCalls returns up to most transactions of ended runs whose outcome is not stored, although
// their intents are final.
func OpenCalls(ctx context.Context, db *store.DB, most int) ([]OpenCall, error) {
	rows, _ := db.Pool().Query(ctx, `
		select c.id, c.run_id, c.step_id, c.key, c.kind, c.ref, c.summary, c.chain_id, c.domain, c.request, r.slug,
			r.task_id, r.root_id
		from run_calls c join runs r on r.id = c.run_id join runs root on root.id = r.root_id
		join intents i on i.id = c.run_id || '/' || c.step_id || '/' || c.key
		where c.kind = $1 and not c.done and root.ended_at is not null and i.state = any($2) order by c.id limit $3`,
		string(repute.CallTransaction), []string{string(walletdb.IntentConfirmed), string(walletdb.IntentReverted),
			string(walletdb.IntentFailed)}, most)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c OpenCall, err error) {
		var chain int64
		err = row.Scan(&c.ID, &c.Run, &c.Step, &c.Key, &c.Kind, &c.Ref, &c.Summary, &chain, &c.Domain, &c.Request,
			&c.Agent,
			&c.Task, &c.Root)
		c.Chain = uint64(chain)
		return c, err
	})
	return list, store.Failed("read open transactions", err)
}

// SettleCall stores the outcome of a transaction of an ended run, unless it is stored or a worker
// has the run again.
func SettleCall(ctx context.Context, db *store.DB, c OpenCall, o CallOutcome) error {
	return db.InTx(ctx, pgx.TxOptions{}, "settle call", func(tx pgx.Tx) error {
		var open bool
		if err := tx.QueryRow(ctx, `select ended_at is not null from runs where id = $1 for update`,
			c.Root).Scan(&open); err != nil || !open {
			return err
		}
		if err := tx.QueryRow(ctx, `select not done from run_calls where id = $1`, c.ID).Scan(&open); err != nil ||
			!open {
			return err
		}
		return endCall(ctx, tx, c.Root, c.ID, o)
	})
}
