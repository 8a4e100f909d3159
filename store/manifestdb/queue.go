package manifestdb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
	"repute/store/docdb"
)

// Plan adds up to limit domains that files of agents name, and reports whether there may be more. Addresses, ports and
// hosts that serve many agents have no manifest of their own.
func Plan(ctx context.Context, db *store.DB, limit int) (more bool, err error) {
	tag, err := db.Pool().Exec(ctx, `
		insert into manifests (domain)
		select n.domain from (
			select distinct w.domain from domains w
			where w.domain ~ '^[a-z0-9_-]+(\.[a-z0-9_-]+)+$' and length(w.domain) <= 253 and w.domain <> all($2)
				and not exists (select from manifests m where m.domain = w.domain) offset 0) n
		where exists (select from domains w join uris u on u.sha256 = w.sha256 join agents a on a.uri_id = u.id
			where w.domain = n.domain)
		limit $1
		on conflict do nothing`, limit, append([]string{}, db.Options().SharedHosts...))
	return err == nil && tag.RowsAffected() == int64(limit), store.Failed("plan manifests", err)
}

// Import adds domains that an operator lists, and returns how many are new. The caller MUST have brought them into the
// form of resolver.HostOf.
func Import(ctx context.Context, db *store.DB, domains []string) (added int, err error) {
	err = db.Pool().QueryRow(ctx, `
		with given as (
			insert into manifests (domain, listed) select distinct d, true from unnest($1::text[]) d order by d
			on conflict (domain) do update set listed = true where not manifests.listed
			returning xmax = 0 as new)
		select count(*) from given where new`, domains).Scan(&added)
	return added, store.Failed("import domains", err)
}

// Claim is a worker's right to ask a domain, and what is known of its manifest. It expires, so that the domain of a
// process that died is asked again.
type Claim struct {
	Domain   string
	Until    time.Time       // by the database's clock
	Host     docdb.HostClaim // zero where the host has no documents planned
	Used     bool            // an operator listed it, or the file of an agent names it
	Denied   string          // why it must not be asked; "" if it may be
	Failures int             // checks in a row without an answer
	Known    Known
	Robots   []string // paths that robots.txt forbids
	// RobotsUntil is when robots.txt is to be read again; zero if it never was.
	RobotsUntil time.Time
	Probed      bool // an operator lets the check probe an endpoint
}

// Known is what was read of a domain's manifest before.
type Known struct {
	URL, ETag, LastModified string
	Body                    []byte // nil without one
	FetchedAt               time.Time
	VerifiedAt              time.Time // when Verdict was made from all that it needs
	Verified                int       // the tier
	Verdict                 []byte    // JSON
}

// ClaimDue claims up to limit domains that are due, the longest waiting first. A domain whose host another worker has,
// or which rests, is left for later. Concurrent calls get different domains and do not wait for each other.
func ClaimDue(ctx context.Context, db *store.DB, limit int) ([]Claim, error) {
	rows, _ := db.Pool().Query(ctx, `
		with due as materialized (
			select m.domain as host from manifests m
			where m.due_at <= now() and (m.claimed_until is null or m.claimed_until <= now())
				and not exists (select from hosts h where h.host = m.domain and not (`+docdb.FreeHost("h")+`))
			order by m.due_at limit $1 for update of m skip locked),
		claimed as (`+docdb.ClaimHostsOf("due")+`),
		taken as (
			select d.host, c.claimed_until from due d left join claimed c on c.host = d.host
			where c.host is not null or not exists (select from hosts h where h.host = d.host))
		update manifests m set claimed_until = now() + $2::interval
		from taken t where m.domain = t.host
		returning m.domain, m.claimed_until, t.claimed_until, m.failures, m.url, m.etag, m.last_modified, m.body,
			m.fetched_at, m.verified_at, m.verified, m.verdict, m.robots, m.robots_until, m.probed, m.listed or exists (
				select from domains w join uris u on u.sha256 = w.sha256 join agents a on a.uri_id = u.id
				where w.domain = m.domain),
			coalesce((select reason from denied where kind = 'host' and value = m.domain), '')`,
		limit, docdb.HostClaimTime)
	claims, err := pgx.CollectRows(rows, scanClaim)
	return claims, store.Failed("claim manifests", err)
}

// scanClaim reads a row of ClaimDue.
func scanClaim(row pgx.CollectableRow) (c Claim, err error) {
	var host, fetched, verified, robots *time.Time
	k := &c.Known
	err = row.Scan(&c.Domain, &c.Until, &host, &c.Failures, &k.URL, &k.ETag, &k.LastModified, &k.Body, &fetched,
		&verified,
		&k.Verified, &k.Verdict, &c.Robots, &robots, &c.Probed, &c.Used, &c.Denied)
	k.FetchedAt, k.VerifiedAt, c.RobotsUntil = column.TimeOf(fetched), column.TimeOf(verified), column.TimeOf(robots)
	if host != nil {
		c.Host = docdb.HostClaim{Host: c.Domain, Until: *host}
	}
	return c, err
}

// Release undoes a claim: the domain is due again at once.
func Release(ctx context.Context, db *store.DB, c Claim) error {
	return db.InTx(ctx, pgx.TxOptions{}, "release manifest", func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update manifests set claimed_until = null where domain = $1 and claimed_until = $2`,
			c.Domain, c.Until)
		if err != nil {
			return err
		}
		return docdb.UnclaimHost(ctx, tx, c.Host)
	})
}
