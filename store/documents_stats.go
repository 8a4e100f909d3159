package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
)

// URIStats counts the queue of agents' URIs and its outcomes. It reads every URI, so it is for
// operators, not for each request.
func (db *DB) URIStats(ctx context.Context) (URIStats, error) {
	stats := URIStats{ByStatus: map[repute.DocumentStatus]int64{}, ByReason: map[string]int64{}}
	rows, err := db.pool.Query(ctx, `
		select case when p.errors > 0 then $1 when p.errors = 0 then $2 when u.reason <> '' then $3 else $4 end as status,
			u.reason, count(*), count(u.next_due), count(*) filter (where u.next_due <= now())
		from uris u
		left join lateral (
			select errors from parses where parses.sha256 = u.sha256 order by parser_version desc limit 1) p on true
		where u.uri <> '' and (u.next_due is not null or u.fetched_at is not null or u.reason <> '')
		group by status, u.reason`,
		repute.DocumentInvalid, repute.DocumentOK, repute.DocumentFailed, repute.DocumentPending)
	if err != nil {
		return stats, failed("count documents", err)
	}
	var status repute.DocumentStatus
	var reason string
	var n, planned, due int64
	_, err = pgx.ForEachRow(rows, []any{&status, &reason, &n, &planned, &due}, func() error {
		stats.Total += n
		stats.Planned += planned
		stats.Due += due
		stats.ByStatus[status] += n
		if reason != "" {
			stats.ByReason[reason] += n
		}
		return nil
	})
	return stats, failed("count documents", err)
}
