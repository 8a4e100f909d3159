package docstats

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/docdb"
)

// ReadURIStats counts the queue of all URIs, of agents, proofs and files, and its outcomes: a
// registration or feedback file with errors is invalid. It reads every URI, so it is for
// operators, not for each request.
func ReadURIStats(ctx context.Context, db *store.DB) (docdb.URIStats, error) {
	stats := docdb.URIStats{ByStatus: map[repute.DocumentStatus]int64{}, ByReason: map[string]int64{}}
	rows, _ := db.Pool().Query(ctx, `
		select case when coalesce(p.errors, f.errors) > 0 then $1 when u.sha256 is not null then $2 when u.reason <> ''
			then $3 else $4 end as status,
			u.reason, count(*), count(u.next_due), count(*) filter (where u.next_due <= now())
		from uris u
		left join lateral (
			select errors from parses where parses.sha256 = u.sha256 and kind = 'registration' order by parser_version desc
				limit 1) p on true
		left join lateral (
			select errors from parses f where f.sha256 = u.sha256 and f.kind = 'feedback' order by parser_version desc limit
				1) f on true
		where u.uri <> '' and (u.next_due is not null or u.fetched_at is not null or u.reason <> '')
		group by status, u.reason`,
		repute.DocumentInvalid, repute.DocumentOK, repute.DocumentFailed, repute.DocumentPending)
	var status repute.DocumentStatus
	var reason string
	var n, planned, due int64
	_, err := pgx.ForEachRow(rows, []any{&status, &reason, &n, &planned, &due}, func() error {
		stats.Total += n
		stats.Planned += planned
		stats.Due += due
		stats.ByStatus[status] += n
		if reason != "" {
			stats.ByReason[reason] += n
		}
		return nil
	})
	return stats, store.Failed("count documents", err)
}

// RankQueue is the number of documents of one rank that wait.
type RankQueue struct {
	Rank    docdb.Rank
	Planned int64     // with a next try, due or later
	Due     int64     // waiting now
	Dead    int64     // failed permanently or too often
	Oldest  time.Time // due for longest, zero when none is
}

// ReadQueue counts the queue by rank. It reads all scheduled documents, so it is for every few
// seconds, not for each request.
func ReadQueue(ctx context.Context, db *store.DB) ([]RankQueue, error) {
	rows, _ := db.Readers().Query(ctx, `
		select r::int, coalesce(p.planned, 0), coalesce(p.due, 0), coalesce(d.dead, 0), p.oldest
		from generate_series(0, $1::int) r
		left join (
			select rank, count(*) as planned, count(*) filter (where next_due <= now()) as due,
				min(next_due) filter (where next_due <= now()) as oldest
			from uris where next_due is not null group by rank) p on p.rank = r
		left join (select rank, count(*) as dead from uris where dead group by rank) d on d.rank = r
		order by r`, docdb.RankFile)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q RankQueue, err error) {
		return q, row.Scan(&q.Rank, &q.Planned, &q.Due, &q.Dead, (*column.Time)(&q.Oldest))
	})
	return out, store.Failed("count due documents", err)
}

// HostQueue is the number of documents of one host that wait or failed.
type HostQueue struct {
	Host   string // "" for what needs no network
	Due    int64
	Failed int64 // last fetch failed
	Dead   int64
	Silent int64 // claims in a row without an answer
}

// worstHosts is how many hosts a status names.
const worstHosts = 20

// WorstHosts returns the hosts with most documents that wait or failed. It reads every URI, so it
// is for operators.
func WorstHosts(ctx context.Context, db *store.DB) ([]HostQueue, error) {
	rows, _ := db.Pool().Query(ctx, `
		select u.host, u.due, u.failed, u.dead, coalesce(h.failures, 0)
		from (
			select split_part(host, '/', 1) as host, count(*) filter (where next_due <= now()) as due, count(*) filter (where
				reason <> '') as failed,
				count(*) filter (where dead) as dead
			from uris group by 1) u
		left join hosts h on h.host = u.host
		where u.due + u.failed > 0
		order by u.due + u.failed desc, u.host limit $1`, worstHosts)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[HostQueue])
	return out, store.Failed("count documents of hosts", err)
}

// Fetching says whether documents are fetched.
type Fetching struct {
	Since   time.Time // since when the longest waiting host is due; zero when none waits
	Workers bool      // some process works on documents
}

// workerGone is how long no process has worked on documents before ReadFetching reports that none does. NoteWorker MUST
// be called more often.
const workerGone = "30 seconds"

// NoteWorker records that this process works on documents.
func NoteWorker(ctx context.Context, db *store.DB) error {
	_, err := db.Pool().Exec(ctx, `
		insert into cursors (job, begun) values ('documents', now())
		on conflict (job, chain_id, part) do update set begun = now()`)
	return store.Failed("note a worker on documents", err)
}

// ReadFetching reads the state of the queue with one cheap query.
func ReadFetching(ctx context.Context, db *store.DB) (f Fetching, err error) {
	err = db.Readers().QueryRow(ctx, `
		select (select min(due_at) from hosts where due_at <= now()), exists (
			select from cursors where job = 'documents' and begun > now() - interval '`+workerGone+`')`).
		Scan((*column.Time)(&f.Since), &f.Workers)
	return f, store.Failed("look at the queue of documents", err)
}
