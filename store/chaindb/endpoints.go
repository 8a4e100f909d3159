package chaindb

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// endpointsShown is the age up to which a row is read. A process writes its rows every few seconds,
// and one that was killed leaves them behind.
const endpointsShown = time.Minute

// endpointsKept is the age after which the rows of a process that no longer writes are deleted.
const endpointsKept = 10 * time.Minute

// maxEndpointError is the most bytes stored of an endpoint's last error.
const maxEndpointError = 500

// SaveEndpoints stores the health of a chain's endpoints as one process sees it. Rows of the same
// owner that are not in the list are deleted, and so are rows older than endpointsKept. An empty
// list changes nothing.
func SaveEndpoints(ctx context.Context, db *store.DB, chainID uint64, list []repute.Endpoint) error {
	if len(list) == 0 {
		return nil
	}
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("save endpoints of chain %d", chainID), func(tx pgx.Tx) error {
		names := make([]string, len(list))
		for i, e := range list {
			names[i] = e.Name
			if err := saveEndpoint(ctx, tx, chainID, e); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `
			delete from endpoints where chain_id = $1
			and (owner = $2 and not name = any($3) or updated_at < now() - $4::interval)`,
			chainID, list[0].Owner, names, endpointsKept)
		return err
	})
}

// ForgetEndpoints deletes the rows of a process that no longer uses the endpoints of a chain.
func ForgetEndpoints(ctx context.Context, db *store.DB, chainID uint64, owner string) error {
	_, err := db.Pool().Exec(ctx, `delete from endpoints where chain_id = $1 and owner = $2`, chainID, owner)
	return store.Failed(fmt.Sprintf("forget endpoints of chain %d", chainID), err)
}

// saveEndpoint inserts or replaces the row of one endpoint.
func saveEndpoint(ctx context.Context, tx pgx.Tx, chainID uint64, e repute.Endpoint) error {
	_, err := tx.Exec(ctx, `
		insert into endpoints (chain_id, name, owner, kind, state, latency_ms, error_rate, requests, failures,
			rate_limit, concurrency, head, last_error, last_ok_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, now())
		on conflict (chain_id, name, owner) do update set kind = excluded.kind, state = excluded.state,
			latency_ms = excluded.latency_ms, error_rate = excluded.error_rate, requests = excluded.requests,
			failures = excluded.failures, rate_limit = excluded.rate_limit, concurrency = excluded.concurrency,
			head = excluded.head, last_error = excluded.last_error, last_ok_at = excluded.last_ok_at,
			updated_at = excluded.updated_at`,
		chainID, e.Name, e.Owner, e.Kind, string(e.State), float64(e.Latency)/float64(time.Millisecond), e.ErrorRate,
		e.Requests, e.Failures, e.RateLimit, e.Concurrency, e.Head, column.PlainText(e.LastError, maxEndpointError),
		column.MaybeTime(e.LastOKAt))
	return err
}

// ReadEndpoints returns the endpoints of a chain, or of all chains for 0, ordered by chain, name and
// owner. Rows that no process wrote for a minute are left out. UpdatedAt is by the clock of the
// database.
func ReadEndpoints(ctx context.Context, tx pgx.Tx, chainID uint64) ([]repute.Endpoint, error) {
	rows, _ := tx.Query(ctx, `
		select chain_id, name, owner, kind, state, latency_ms, error_rate, requests, failures, rate_limit,
			concurrency, head, last_error, last_ok_at, updated_at
		from endpoints where ($1 = 0 or chain_id = $1) and updated_at >= now() - $2::interval
		order by chain_id, name, owner`, int64(chainID), endpointsShown)
	return pgx.CollectRows(rows, scanEndpoint)
}

// scanEndpoint reads a row of ReadEndpoints.
func scanEndpoint(row pgx.CollectableRow) (repute.Endpoint, error) {
	var e repute.Endpoint
	var state string
	var latency float64
	err := row.Scan(&e.ChainID, &e.Name, &e.Owner, &e.Kind, &state, &latency, &e.ErrorRate, &e.Requests, &e.Failures,
		&e.RateLimit, &e.Concurrency, &e.Head, &e.LastError, (*column.Time)(&e.LastOKAt), (*column.Time)(&e.UpdatedAt))
	e.State = repute.EndpointState(state)
	e.Latency = time.Duration(latency * float64(time.Millisecond))
	return e, err
}
