package docdb

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Rank is the priority of a URI in the queue, by the use of its document. Lower ranks are
// fetched first. A URI with several uses has the lowest of their ranks.
type Rank int

// Ranks of URIs.
const (
	// RankNew is an agent's file that was never read.
	RankNew Rank = iota
	// RankAgent is an agent's file that was read before.
	RankAgent
	// RankProof is the proof of a domain.
	RankProof
	// RankFile is a file of feedback, of a response, or of a validation.
	RankFile
)

// claimTime is how long a claim of a URI lasts. It doubles with every claim without a
// success, up to 2^maxClaimDoublings, so that a document that crashes its reader does so
// less and less often.
const (
	claimTime         = 5 * time.Minute
	maxClaimDoublings = 6
)

// lastRank returns the highest rank that is fetched: without files of feedback when Options.NoFiles
// is set.
func lastRank(db *store.DB) Rank {
	if db.Options().NoFiles {
		return RankProof
	}
	return RankFile
}

// HostClaim is the right of one worker to fetch from a host. It ends with FinishHost, BackOffHost or ReleaseHost, which
// change nothing once it has expired and another worker has the host.
type HostClaim struct {
	Host  string
	Until time.Time // by the database's clock; zero for a host that needs no claim
}

// ClaimHosts claims hosts with documents due, up to limit in all: the longest waiting of each rank in turn, so that no
// rank waits for another. The rank of a host is that of its first due document. Hosts in except are left out.
// Concurrent calls get different hosts and do not wait for each other.
func ClaimHosts(ctx context.Context, db *store.DB, ranks []Rank, limit int, except ...string) ([]HostClaim, error) {
	if ranks = slices.DeleteFunc(slices.Clone(ranks), func(r Rank) bool { return r > lastRank(db) }); len(ranks) == 0 {
		return nil, nil
	}
	rows, _ := db.Pool().Query(ctx, `
		with due as (
			select h.host, r.place, row_number() over (partition by r.place order by h.due_at) as nth
			from unnest($1::int[]) with ordinality r(rank, place)
			cross join lateral (
				select host, due_at from hosts where rank = r.rank and `+unclaimedDue+` and host <> all($3)
				order by due_at limit $2 for update skip locked) h),
		picked as (select host from due order by nth, place limit $2)
		update hosts h set claimed_until = now() + $4::interval, arrived = false from picked p where h.host = p.host
		returning h.host, h.claimed_until`, ranks, limit, append([]string{}, except...), HostClaimTime)
	claims, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c HostClaim, err error) {
		return c, row.Scan(&c.Host, &c.Until)
	})
	return claims, store.Failed("claim hosts", err)
}

// unclaimedDue is the SQL condition of hosts that may be claimed.
const unclaimedDue = `due_at <= now() and (claimed_until is null or claimed_until <= now())`

// DueOf returns those of some hosts that have documents due. It is for hosts from which several workers may
// fetch at the same time, without a claim.
func DueOf(ctx context.Context, db *store.DB, hosts ...string) ([]string, error) {
	rows, _ := db.Pool().Query(ctx, `select host from hosts where host = any($1) and due_at <= now()`, hosts)
	due, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return due, store.Failed("list due hosts", err)
}

// String returns the name of the rank.
func (r Rank) String() string {
	if r < RankNew || r > RankFile {
		return "unknown"
	}
	return [...]string{"new", "agent", "proof", "file"}[r]
}

// HostClaimTime is how long a claim of a host lasts, also for other queues that share the claims of hosts. Its worker
// ends it before, unless the process died.
const HostClaimTime = 135 * time.Second

// FreeHost returns the SQL of whether row h of hosts is neither claimed nor resting.
func FreeHost(h string) string {
	return `(` + h + `.claimed_until is null or ` + h + `.claimed_until <= now())
		and (` + h + `.rest_until is null or ` + h + `.rest_until <= now())`
}

// ClaimHostsOf returns the SQL that claims those hosts of a relation that are free, and returns host and claimed_until
// of each. It is for other queues that ask the same hosts; UnclaimHost or BackOffHost ends such a claim.
func ClaimHostsOf(relation string) string {
	return `
		update hosts set claimed_until = now() + interval '` + strconv.Itoa(int(HostClaimTime.Seconds())) + ` seconds'
		from (select h.host as name from hosts h join ` + relation + ` r on r.host = h.host where ` + FreeHost("h") + `
			for update of h skip locked) free
		where hosts.host = free.name
		returning hosts.host, hosts.claimed_until`
}

// UnclaimHost ends a claim of ClaimHostsOf: the host is due when its documents are. The zero claim is of no host.
func UnclaimHost(ctx context.Context, tx pgx.Tx, c HostClaim) error {
	if c.Until.IsZero() {
		return nil
	}
	_, err := tx.Exec(ctx, `update hosts set claimed_until = null where `+ownClaim, c.Host, c.Until)
	return err
}

// ownClaim is the SQL condition that claim $2 of host $1 is still the caller's.
const ownClaim = `host = $1 and claimed_until is not distinct from $2`

// ReleaseHost ends a claim with due documents left: the host is due again at once.
func ReleaseHost(ctx context.Context, db *store.DB, c HostClaim) error {
	_, err := db.Pool().Exec(ctx, `
		update hosts set claimed_until = null, due_at = least(due_at, greatest(now(), rest_until)) where `+ownClaim,
		c.Host, column.MaybeTime(c.Until))
	return store.Failed("return host", err)
}

// FinishHost ends a claim: the host is due again with its next document, behind all hosts
// that wait already.
func FinishHost(ctx context.Context, db *store.DB, c HostClaim) error {
	return db.InTx(ctx, pgx.TxOptions{}, "finish host", func(tx pgx.Tx) error {
		// The lock on the row keeps others from adding a due document unseen.
		tag, err := tx.Exec(ctx, "select from hosts where "+ownClaim+" for update", c.Host, column.MaybeTime(c.Until))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		// Due documents are ordered by rank, later ones by time.
		done, err := tx.Exec(ctx, `
			with next as (
				select r as rank, u.due from generate_series(0, $2::int) r
				cross join lateral (
					select next_due as due from uris where host = $1 and rank = r and next_due is not null
					order by next_due limit 1) u
				order by greatest(u.due, now()), r limit 1)
			update hosts h set due_at = greatest(n.due, now()), rank = n.rank, failures = 0, rest_until = null,
				claimed_until = null
			from next n where h.host = $1`, c.Host, lastRank(db))
		if err == nil && done.RowsAffected() == 0 {
			_, err = tx.Exec(ctx, "delete from hosts where host = $1", c.Host)
		}
		return err
	})
}

// minHostBackoff is the shortest backoff of a host that timed out. New documents and
// requested refreshes cannot shorten it.
const minHostBackoff = 5 * time.Minute

// BackOffHost ends a claim of a host that did not answer. The host is due again after
// shortest, doubled for each such claim in a row up to longest, but not before rest, the pause
// that it asked for. Documents that became due during the claim or become due after it make it due
// earlier, though not within rest or five minutes: only documents that the claim found are held longer.
func BackOffHost(ctx context.Context, db *store.DB, c HostClaim, rest, shortest, longest time.Duration) error {
	_, err := db.Pool().Exec(ctx, `
		with pause as (
			select least($4::interval * power(2, least(failures, 20)), $5::interval) * (0.9 + random() / 5) as silence
			from hosts where host = $1)
		update hosts set failures = failures + 1,
			due_at = now() + greatest($3::interval, case when arrived then least(p.silence, $6::interval) else p.silence end),
			rest_until = now() + greatest($3::interval, least(p.silence, $6::interval)), claimed_until = null
		from pause p where `+ownClaim, c.Host, column.MaybeTime(c.Until), rest, shortest, longest, minHostBackoff)
	return store.Failed("postpone host", err)
}

// ReleaseURI undoes a claim: the URI is due again, and the claim does not count as an
// attempt.
func ReleaseURI(ctx context.Context, db *store.DB, u URI) error {
	_, err := db.Pool().Exec(ctx, `
		update uris set next_due = now(), attempts = attempts - 1
		where id = $1 and attempts = $2 and next_due is not null`, u.ID, u.Attempts)
	return store.Failed("release document", err)
}

// DueURIs claims up to limit due URIs of a host, ordered by rank and within a rank the ones
// that became due last first. A claim without SaveDocuments expires, and the URI is due again.
func DueURIs(ctx context.Context, db *store.DB, host string, limit int) ([]URI, error) {
	rows, _ := db.Pool().Query(ctx, claimSQL(limit, lastRank(db)), host, claimTime, maxClaimDoublings)
	deny := false
	uris, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u URI, err error) {
		var raw []byte
		err = row.Scan(&u.ID, &raw, &u.Kind, &u.Host, &u.Rank, &u.Attempts, &u.Failures, &u.ETag, &u.LastModified,
			&u.Used,
			&u.Claimed, &deny)
		u.URI = string(raw)
		return u, err
	})
	if err == nil && deny {
		err = judgeURIs(ctx, db, uris)
	}
	return uris, store.Failed("claim due documents", err)
}

// claimSQL returns the statement of DueURIs. Its bounds are part of the text, because it runs
// for every few documents and Postgres keeps a plan only when it knows how many rows it
// returns.
func claimSQL(limit int, last Rank) string {
	n := strconv.Itoa(limit)
	return `
		with due as materialized (
			select u.id, u.rank as place, u.next_due as since from generate_series(0, ` + strconv.Itoa(int(last)) + `) r
			cross join lateral (
				select id, rank, next_due from uris
				where host = $1 and rank = r and next_due <= now()
				order by next_due desc limit ` + n + ` for update skip locked) u
			limit ` + n + `),
		claimed as (
			update uris u set attempts = attempts + 1,
				next_due = now() + $2::interval * power(2, least(u.attempts, $3))
			from due where u.id = due.id
			returning u.id, u.uri, u.kind, u.host, u.rank, u.attempts, u.failures, u.sha256, u.etag, u.last_modified,
				u.tried_at, u.next_due, due.place, due.since)
		select id, uri, kind, host, rank, attempts, failures, ` + ifKept("etag") + `, ` + ifKept("last_modified") + `, ` + usedURI("claimed") + `,
			next_due, exists (select from denied)
		from claimed order by place, since desc, id desc`
}

// judgeURIs marks the URIs that must not be fetched.
func judgeURIs(ctx context.Context, db *store.DB, uris []URI) error {
	ids := make([]int64, len(uris))
	for i, u := range uris {
		ids[i] = u.ID
	}
	rows, _ := db.Pool().Query(ctx, `
		select id, reason from (select u.id, `+deniedURI("u")+` as reason from uris u where u.id = any($1)) d where reason is not null`, ids)
	var id int64
	var reason string
	_, err := pgx.ForEachRow(rows, []any{&id, &reason}, func() error {
		uris[slices.Index(ids, id)].Denied = &repute.DeniedError{Reason: reason}
		return nil
	})
	return err
}

// ifKept returns the SQL of a URI's HTTP validator, empty when the bytes it stands for were
// dropped: a server that answered "not modified" would keep them away for ever.
func ifKept(column string) string {
	return `case when ` + column +
		` <> '' and exists (select from documents d where d.sha256 = claimed.sha256 and d.body is not null) then ` +
		column + ` else '' end`
}

// usedURI returns the SQL of whether a URI is in use: it is an agent's current URI, or the
// proof of a domain that an agent's file names. Files are always in use, and so are URIs that
// were never tried, because the row of their user may not be committed yet.
func usedURI(u string) string {
	return `case when ` + u + `.tried_at is null then true
		when ` + u + `.rank < 2 then exists (select from agents a where a.uri_id = ` + u + `.id)
		when ` + u + `.rank = 2 then exists (
			select from domains w join uris f on f.sha256 = w.sha256 join agents a on a.uri_id = f.id where w.uri_id = ` + u + `.id)
		else true end`
}

// PlanFiles makes up to limit new files of feedback, responses and validations due, and
// returns how many it found. The documents loop does this so that indexing stays fast.
func PlanFiles(ctx context.Context, db *store.DB, limit int) (int, error) {
	if db.Options().NoFiles {
		return 0, nil
	}
	var n int
	err := db.Pool().QueryRow(ctx, `
		with picked as materialized (
			select id from uris where rank = 3 and next_due is null and tried_at is null and kind <> 'empty'
			order by id limit $1 for update skip locked),
		planned as (update uris u set next_due = now() from picked where u.id = picked.id returning u.host, u.rank),
		turns as (`+ScheduleHosts("planned")+`)
		select count(*) from planned`, limit).Scan(&n)
	return n, store.Failed("plan files", err)
}

// ScheduleHosts returns the SQL that makes each host of a relation due now or when its backoff
// ends. A host that a worker has claimed is marked, so that a backoff does not hold the documents of the relation.
// Rows are locked in the order of names, as every writer does.
func ScheduleHosts(relation string) string {
	return `
		insert into hosts (host, due_at, rank)
		select host, now(), min(rank) from ` + relation + ` group by host order by host
		on conflict (host) do update set
			due_at = least(hosts.due_at, greatest(excluded.due_at, hosts.rest_until)), rank = least(hosts.rank, excluded.rank),
			arrived = hosts.claimed_until is not null
		where hosts.due_at > greatest(excluded.due_at, hosts.rest_until) or hosts.rank > excluded.rank
			or hosts.claimed_until is not null and not hosts.arrived`
}

// scheduleEarlier resolves a conflict on a host: the earlier time and the lower rank are
// kept.
const scheduleEarlier = `
	on conflict (host) do update set
		due_at = least(hosts.due_at, greatest(excluded.due_at, hosts.rest_until)), rank = least(hosts.rank, excluded.rank)
	where hosts.due_at > greatest(excluded.due_at, hosts.rest_until) or hosts.rank > excluded.rank`

// RestoreHosts schedules every host that has planned documents and is not scheduled, for
// instance after files were disabled for a time. It reads all planned URIs, so it runs once
// at the start.
func RestoreHosts(ctx context.Context, db *store.DB) error {
	_, err := db.Pool().Exec(ctx, `
		insert into hosts (host, due_at, rank)
		select host, min(next_due), min(rank) from uris where next_due is not null and rank <= $1 group by host order by
			host`+
		scheduleEarlier, lastRank(db))
	return store.Failed("restore hosts", err)
}

// URI is a claimed entry of the document queue.
type URI struct {
	ID                 int64
	URI                string // raw bytes of the chain
	Kind, Host         string
	Rank               Rank
	Attempts           int // claims since the last success, this one included
	Failures           int // in a row
	ETag, LastModified string
	// Used: an agent shows it now, or a file that an agent shows names its domain;
	// always true of files.
	Used bool
	// Denied is set where the operator's deny-list forbids the fetch.
	Denied *repute.DeniedError
	// Claimed is until when the claim holds, by the database's clock: FetchResult.Claimed.
	Claimed time.Time
}

// URIStats counts document URIs.
type URIStats struct {
	Total    int64 // distinct URIs, the empty one excluded
	Due      int64 // waiting now
	Planned  int64 // with a next try, due or later
	ByStatus map[repute.DocumentStatus]int64
	ByReason map[string]int64 // last failures by code
}
