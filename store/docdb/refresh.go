package docdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// refreshPause is the least time between two requested refreshes of an agent's document.
const refreshPause = time.Minute

// Refresh makes the URI of an agent due, and the proofs of the domains that its file names, unless
// that was done within refreshPause.
func Refresh(ctx context.Context, tx pgx.Tx, id repute.AgentID) (r repute.Refresh, err error) {
	var uri int64
	var last *time.Time
	var now time.Time
	err = tx.QueryRow(ctx, `
		select u.id, u.refresh_at, now() from agents a join uris u on u.id = a.uri_id
		where (a.chain_id, a.token_id) = ($1, $2) for no key update of u`, id.ChainID, column.TokenNum(id.TokenID)).Scan(&uri, &last, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, repute.Missing("agent %s", id.Short())
	} else if err != nil {
		return r, err
	}
	if last != nil && now.Before(last.Add(refreshPause)) {
		return repute.Refresh{NextAllowed: last.Add(refreshPause)}, nil
	}
	_, err = tx.Exec(ctx, `
		with proofs as materialized (
			select p.id from uris u join domains w on w.sha256 = u.sha256 join uris p on p.id = w.uri_id
			where u.id = $1 and p.id <> $1 and (p.tried_at is null or p.tried_at < now() - $2::interval)
			order by p.id for no key update of p skip locked),
		due as (
			update uris u set next_due = case when u.id = $1 and `+unchanging("u")+` then u.next_due else now() end, refresh_at = now()
			where u.id in (select $1::bigint union all select id from proofs) returning u.host, u.rank)`+ScheduleHosts("due"), uri, refreshPause)
	return repute.Refresh{Queued: true, NextAllowed: now.Add(refreshPause)}, err
}

// unchanging returns the SQL of whether a URI always stands for the same bytes and these are
// stored: its text is the document, or contains its hash.
func unchanging(u string) string {
	return `(` + u + `.source in ('data', 'inline', 'ipfs') and exists (
		select from documents d where d.sha256 = ` + u + `.sha256 and d.body is not null))`
}

// RetryFilter selects documents that failed. The zero value selects all.
type RetryFilter struct {
	Host   string           // with or without its port; "" for any
	Reason string           // code of the failure, "" for any
	Agents []repute.AgentID // whose current document it is; nil for any
}

// RetryDocuments makes documents due whose last fetch failed, dead ones too, and returns how
// many.
func RetryDocuments(ctx context.Context, db *store.DB, f RetryFilter) (n int64, err error) {
	err = db.InTx(ctx, pgx.TxOptions{}, "retry documents", func(tx pgx.Tx) error {
		n, err = Requeue(ctx, tx, f)
		return err
	})
	return n, err
}

// Selected counts the URIs that a RetryFilter selects, by the outcome of their last fetch.
type Selected struct {
	URIs int64 // of the host and the agents
	Due  int64 // of them, waiting to be fetched already
}

// CountSelected counts what a filter selects but for its Reason. It may read every URI:
// it is for operators.
func CountSelected(ctx context.Context, db *store.DB, f RetryFilter) (s Selected, err error) {
	chains, tokens := column.KeyColumns(f.Agents)
	err = db.Pool().QueryRow(ctx, `
		select count(*), count(*) filter (where next_due <= now()) from uris u where kind <> 'empty' and `+selectedURIs(1),
		f.Host, f.Agents != nil, chains, tokens).Scan(&s.URIs, &s.Due)
	return s, store.Failed("count documents", err)
}

// selectedURIs returns the SQL of the URIs of a filter's host and agents, with parameters
// from $n on.
func selectedURIs(n int) string {
	return fmt.Sprintf(`($%[1]d = '' or host = $%[1]d or split_part(host, ':', 1) = $%[1]d or split_part(host, '/', 1) = $%[1]d)
		and (not $%[2]d or exists (
			select from agents a join unnest($%[3]d::bigint[], $%[4]d::numeric[]) as k(c, t) on (a.chain_id, a.token_id) =
				(k.c, k.t)
			where a.uri_id = u.id))`, n, n+1, n+2, n+3)
}

// Requeue makes the failed documents that f selects due again and returns how many.
func Requeue(ctx context.Context, tx pgx.Tx, f RetryFilter) (n int64, err error) {
	chains, tokens := column.KeyColumns(f.Agents)
	err = tx.QueryRow(ctx, `
		with due as (
			update uris u set next_due = now(), attempts = 0, failures = 0, dead = false,
				host = case when host = '`+RetryHost+`' then '`+ipfsHost+`' else host end
			where reason <> '' and kind <> 'empty' and ($1 = '' or reason = $1) and `+selectedURIs(2)+`
			returning u.host, u.rank),
		turns as (`+ScheduleHosts("due")+`)
		select count(*) from due`, f.Reason, f.Host, f.Agents != nil, chains, tokens).Scan(&n)
	return n, err
}
