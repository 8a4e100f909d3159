package agentdb

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
)

// freeOutcome is the outcome of entries that count free requests.
const freeOutcome = "free"

// Free names a counter of free requests: of a client and a capability from a time on.
type Free struct {
	Agent, Client, Capability string
	Since                     time.Time
}

// TakeFree counts a free request unless so many are counted, and reports whether it did. Processes
// count together.
func TakeFree(ctx context.Context, db *store.DB, f Free, limit int) (taken bool, err error) {
	detail, err := json.Marshal(map[string]string{"client": column.CleanText(f.Client)})
	if err != nil {
		return false, fmt.Errorf("count free requests: %w", err)
	}
	err = db.InTx(ctx, pgx.TxOptions{}, "count free requests", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`,
			fmt.Sprintf("free %s %s %s", f.Agent, f.Client, f.Capability)); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx,
			`select count(*) from agent_receipts where at >= $1 and agent = $2 and kind = 'decision'
			and outcome = 'free' and capability = $3 and detail->>'client' = $4`, f.Since, f.Agent, f.Capability,
			column.CleanText(f.Client)).Scan(&n); err != nil {
			return err
		}
		if taken = n < limit; !taken {
			return nil
		}
		return add(ctx, tx, &Entry{Kind: Decision, Agent: f.Agent, Capability: f.Capability, Outcome: freeOutcome,
			Detail: detail})
	})
	return taken, err
}
