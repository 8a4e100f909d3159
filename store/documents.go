package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
)

// claimTime is for how long a claimed URI is nobody else's. It doubles with
// every claim that was not followed by a success, up to 2^maxClaimDoublings, so
// that a document which kills its reader does so ever more rarely.
const (
	claimTime         = 5 * time.Minute
	maxClaimDoublings = 6
)

// FetchResult is what became of a claimed URI.
type FetchResult struct {
	URIID int64
	// Body are the bytes read; nil when there are none: the fetch failed
	// (Reason) or the bytes are still those of the fetch before (no Reason).
	Body               []byte
	MediaType, Source  string  // of Body; Source is data, inline, https or ipfs
	Blocks             []Block // that prove Body, for ipfs
	ETag, LastModified string  // to ask for changes with
	FetchedAt          time.Time
	// ParserVersion, Registration and Problems are what package manifest made
	// of Body. Registration is nil when it is no document at all.
	ParserVersion int
	Registration  *repute.Registration
	Problems      []repute.Problem
	// Reason is the code of a failure, "" for success; Detail is for people.
	Reason, Detail string
	NextDue        time.Time // when to fetch again, zero for never
}

// documentTimeout bounds one SaveDocument, which writes a change for every agent
// that shares the URI: half a minute does for a million.
const documentTimeout = 30 * time.Second

// DueHosts names hosts with documents to fetch now, "" for those that need no
// network: those of first, which never wait behind others, and up to limit others,
// the one that waited longest before. A host whose documents were all fetched or
// failed stays until FinishHost.
func (db *DB) DueHosts(ctx context.Context, limit int, first ...string) ([]string, error) {
	if first == nil {
		first = []string{}
	}
	rows, err := db.pool.Query(ctx, `
		(select host from hosts where host = any($1) and turn <= now())
		union all
		(select host from hosts where turn <= now() and host <> all($1) order by turn limit $2)`, first, limit)
	if err != nil {
		return nil, failed("list due hosts", err)
	}
	hosts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return hosts, failed("list due hosts", err)
}

// FinishHost ends a host's turn: the next is when its next document is due, behind
// all hosts that wait already.
func (db *DB) FinishHost(ctx context.Context, host string) error {
	return db.inTx(ctx, pgx.TxOptions{}, "finish host", func(tx pgx.Tx) error {
		// With the row locked nobody adds a due document unseen.
		if _, err := tx.Exec(ctx, "select from hosts where host = $1 for update", host); err != nil {
			return err
		}
		var due *time.Time
		err := tx.QueryRow(ctx, `
			select min(next_due) from uris where host = $1 and next_due is not null`, host).Scan(&due)
		if err != nil {
			return err
		}
		if due == nil {
			_, err = tx.Exec(ctx, "delete from hosts where host = $1", host)
			return err
		}
		_, err = tx.Exec(ctx, "update hosts set turn = greatest($2, now()) where host = $1", host, *due)
		return err
	})
}

// ReleaseURI gives back a claim nothing came of: the URI is due again, and the
// claim does not count as an attempt.
func (db *DB) ReleaseURI(ctx context.Context, u URI) error {
	_, err := db.pool.Exec(ctx, `
		update uris set next_due = now(), attempts = attempts - 1
		where id = $1 and attempts = $2 and next_due is not null`, u.ID, u.Attempts)
	return failed("release document", err)
}

// DueURIs claims up to limit due URIs of a host, those that became due last
// first: new agents before repetitions. A claim that is not followed by
// SaveDocument expires, and the URI is due again.
func (db *DB) DueURIs(ctx context.Context, host string, limit int) ([]URI, error) {
	rows, err := db.pool.Query(ctx, `
		with due as (
			select id, next_due as since from uris
			where host = $1 and next_due <= now()
			order by next_due desc limit $2 for update skip locked),
		claimed as (
			update uris u set attempts = attempts + 1,
				next_due = now() + $3::interval * power(2, least(u.attempts, $4))
			from due where u.id = due.id
			returning u.id, u.uri, u.kind, u.host, u.attempts, u.etag, u.last_modified, due.since)
		select id, uri, kind, host, attempts, etag, last_modified from claimed order by since desc, id desc`,
		host, limit, claimTime, maxClaimDoublings)
	if err != nil {
		return nil, failed("claim due documents", err)
	}
	uris, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u URI, err error) {
		var raw []byte
		err = row.Scan(&u.ID, &raw, &u.Kind, &u.Host, &u.Attempts, &u.ETag, &u.LastModified)
		u.URI = string(raw)
		return u, err
	})
	return uris, failed("claim due documents", err)
}

// SaveDocument stores what became of a URI in one transaction. After a failure
// the bytes last read stay. Agents whose current URI it is get a change when
// what they show changed. repute.ErrNotFound: no such URI.
func (db *DB) SaveDocument(ctx context.Context, r FetchResult) error {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	return db.inTx(ctx, pgx.TxOptions{}, "save document", func(tx pgx.Tx) error {
		before, err := readShown(ctx, tx, r.URIID)
		if err != nil {
			return err
		}
		if r.Reason == "" {
			err = saveSuccess(ctx, tx, r)
		} else {
			err = saveFailure(ctx, tx, r)
		}
		if err != nil {
			return err
		}
		if err := saveFetch(ctx, tx, r); err != nil {
			return err
		}
		after, err := readShown(ctx, tx, r.URIID)
		if err != nil || before.equal(after) {
			return err
		}
		return announce(ctx, tx, r.URIID, after)
	})
}

// shown is what a reader sees of a document; its JSON is the change.
type shown struct {
	Status   repute.DocumentStatus `json:"status"`
	Source   string                `json:"source,omitempty"`
	SHA256   string                `json:"sha256,omitempty"`
	Reason   string                `json:"reason,omitempty"`
	Name     string                `json:"name,omitempty"`
	Problems int                   `json:"problems"`

	parse []byte // all of it, as stored
}

func (s shown) equal(o shown) bool {
	return s.Status == o.Status && s.Source == o.Source && s.SHA256 == o.SHA256 && s.Reason == o.Reason &&
		bytes.Equal(s.parse, o.parse)
}

// readShown locks the URI and gives what it shows.
func readShown(ctx context.Context, tx pgx.Tx, id int64) (s shown, err error) {
	var uri []byte
	var d documentRow
	err = tx.QueryRow(ctx, `
		select u.uri, u.source, u.sha256, null::bigint, u.fetched_at, u.reason, u.detail, u.next_due,
			p.registration, p.problems, p.problem_count, p.errors
		from uris u
		left join lateral (
			select registration, problems, jsonb_array_length(problems) as problem_count, errors from parses
			where parses.sha256 = u.sha256 order by parser_version desc limit 1) p on true
		where u.id = $1 for update of u`, id).Scan(append([]any{&uri}, d.into()...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, fmt.Errorf("uri %d: %w", id, repute.ErrNotFound)
	} else if err != nil {
		return s, err
	}
	doc, err := d.document(string(uri))
	if err != nil {
		return s, err
	}
	s = shown{Status: doc.Status, Source: doc.Source, Reason: doc.Reason, Problems: len(doc.Problems)}
	s.parse = slices.Concat(d.registration, []byte{0}, d.problems)
	if d.sha256 != nil {
		s.SHA256 = fmt.Sprintf("0x%x", d.sha256)
	}
	if doc.Registration != nil {
		s.Name = doc.Registration.Name
	}
	return s, nil
}

func saveSuccess(ctx context.Context, tx pgx.Tx, r FetchResult) error {
	var sum []byte
	if r.Body != nil {
		hash := sha256.Sum256(r.Body)
		sum = hash[:]
		if err := saveBody(ctx, tx, sum, r); err != nil {
			return err
		}
		if err := saveBlocks(ctx, tx, sum, r.Blocks); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `
		update uris set sha256 = coalesce($2, sha256), source = case when $3 = '' then source else $3 end,
			fetched_at = $4, next_due = $5, etag = $6, last_modified = $7, attempts = 0, reason = '', detail = ''
		where id = $1`, r.URIID, sum, r.Source, r.FetchedAt, nullTime(r.NextDue), cleanText(r.ETag), cleanText(r.LastModified))
	return err
}

// saveBody stores bytes and their parse once each: both follow from their keys.
func saveBody(ctx context.Context, tx pgx.Tx, sum []byte, r FetchResult) error {
	_, err := tx.Exec(ctx, `
		insert into documents (sha256, body, media_type, first_seen) values ($1, $2, $3, $4)
		on conflict do nothing`, sum, r.Body, cleanText(r.MediaType), r.FetchedAt)
	if err != nil {
		return err
	}
	registration, err := encodeRegistration(r.Registration)
	if err != nil {
		return err
	}
	problems, err := encodeProblems(r.Problems)
	if err != nil {
		return err
	}
	worst := 0
	for _, p := range r.Problems {
		if p.Severity == repute.SeverityError {
			worst++
		}
	}
	parse, err := tx.Exec(ctx, `
		insert into parses (sha256, parser_version, registration, problems, errors) values ($1, $2, $3, $4, $5)
		on conflict do nothing`, sum, r.ParserVersion, registration, problems, worst)
	if err != nil || parse.RowsAffected() == 0 {
		return err
	}
	_, err = tx.Exec(ctx, upsertSearchable, searchArgs(sum, r.ParserVersion, worst, r.Registration)...)
	return err
}

func saveFailure(ctx context.Context, tx pgx.Tx, r FetchResult) error {
	_, err := tx.Exec(ctx, "update uris set reason = $2, detail = $3, next_due = $4 where id = $1",
		r.URIID, cleanText(r.Reason), cleanText(r.Detail), nullTime(r.NextDue))
	return err
}

// saveFetch adds to the URI's fetches when the outcome differs from the one
// before: a year of unchanged daily fetches is one row.
func saveFetch(ctx context.Context, tx pgx.Tx, r FetchResult) error {
	_, err := tx.Exec(ctx, `
		with new as (
			select id, case when $3 = '' then sha256 end as sha256, case when $3 = '' then source else '' end as source
			from uris where id = $1),
		last as (select sha256, source, reason from fetches where uri_id = $1 order by fetched_at desc limit 1)
		insert into fetches (uri_id, fetched_at, sha256, source, reason)
		select id, $2, sha256, source, $3 from new
		where not exists (select from last where (last.sha256, last.source, last.reason) is not distinct from (new.sha256, new.source, $3))
		on conflict do nothing`, r.URIID, r.FetchedAt, cleanText(r.Reason))
	return err
}

// announce writes one change per agent that shows the document. It belongs to
// no block: a rewind does not undo what was read from a URI.
func announce(ctx context.Context, tx pgx.Tx, uri int64, s shown) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into changes (chain_id, kind, block, log_index, token_id, data)
		select chain_id, 'document.updated', 0, 0, token_id, $2 from agents where uri_id = $1
		order by chain_id, token_id`, uri, escapeNUL(data))
	return err
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

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
