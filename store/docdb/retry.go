package docdb

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// RetryHost is the queue of ipfs documents that failed twice or more. Perhaps no node has them
// any more, and finding that out takes long; new documents must not wait for it.
const RetryHost = ipfsHost + "/again"

// ipfsHost is the queue of all other ipfs documents, as package resolver names it.
const ipfsHost = "ipfs"

// moveToRetryHost moves ipfs documents that failed again to RetryHost.
func (s saving) moveToRetryHost(ctx context.Context, tx pgx.Tx) error {
	var broken []int64
	for _, r := range s.results {
		if r.Reason != "" {
			broken = append(broken, r.URIID)
		}
	}
	if broken == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `
		with moved as (
			update uris set host = $2 where id = any($1) and host = $3 and failures > 1 returning host, rank, next_due)
		insert into hosts (host, due_at, rank)
		select host, min(next_due), min(rank) from moved where next_due is not null group by host `+scheduleEarlier, broken, RetryHost, ipfsHost)
	return err
}

// requestedOr returns the SQL of when URI u is due: at the time of a refresh requested during
// the fetch, else when the outcome k says.
func requestedOr(due string) string {
	return `case when u.next_due < k.claimed then u.next_due else ` + due + ` end`
}
