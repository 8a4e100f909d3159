package manifestdb

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/store"
	"repute/store/column"
	"repute/store/docdb"
)

// State says what is known of a domain's manifest.
type State string

// States of manifests. A domain keeps its state while it does not answer, up to a week.
const (
	StatePending State = "pending" // never asked
	StateOK      State = "ok"      // a manifest without errors
	StateInvalid State = "invalid" // a manifest with errors
	StateOther   State = "other"   // a document of another format
	StateMissing State = "missing" // the domain says that there is none
	StateRefused State = "refused" // robots.txt forbids to ask
	StateDenied  State = "denied"  // the deny-list forbids to ask
	StateFailed  State = "failed"  // never read, or not read for a week
)

// ReasonRobots is the reason of a domain whose robots.txt forbids to ask. Others are those of documents.
const ReasonRobots = "robots"

// patience is how long what a domain served counts while the domain does not answer. A domain whose registration lapsed
// MUST NOT prove anything for ever.
const patience = 7 * 24 * time.Hour

// Intent is a row of manifest_intents.
type Intent struct {
	Name, Description, Method, URL string
	Parameters                     []string
	Price                          *string // a decimal; nil where only the service's answer tells
	Protocols, Networks            []string
	Terms                          json.RawMessage
}

// Content is what a domain serves, as it was read and judged.
type Content struct {
	State                   State // StateOK, StateInvalid or StateOther
	URL, ETag, LastModified string
	Body                    []byte
	Parser                  int
	Format, Title           string
	Payout                  []byte // 20 bytes, nil without
	Declared, Verified      int
	Verdict                 json.RawMessage
	// Complete reports that the verdict was made from all documents that it needs.
	Complete         bool
	Errors, Warnings int
	Intents          []Intent
	// Watched reports that the manifest has a commitment that can be measured. Only then Latency is kept: from the
	// request for the manifest, or from the probe, to the first byte of the answer; 0 where it was not measured.
	Watched bool
	Latency time.Duration
	// ProbeFailed reports that an endpoint was probed, and did not answer or answered with a status of its own fault.
	ProbeFailed bool
	// Unmeasured reports that nothing was learned about latency and uptime: what is stored about them stays as it is.
	Unmeasured bool
}

// Result is the outcome of a check. Exactly one of Content, Gone and Reason without Gone says what became of it.
type Result struct {
	Content *Content // the domain served it, or said that it still does
	// Gone is StateMissing, StateRefused or StateDenied where what was read before MUST NOT be shown any more.
	Gone           State
	Reason, Detail string // of a failure; set with Gone, too
	// Down reports of a failure that the host did not answer, or with a status of its own fault.
	Down bool
	// Wait is the time until the next check.
	Wait        time.Duration
	Robots      []string
	RobotsUntil time.Time // zero where robots.txt was not read
}

// visible is what a change of shows in the change feed.
type visible struct {
	Domain   string `json:"domain"`
	State    State  `json:"state"`
	SHA256   []byte `json:"-"`
	Declared int    `json:"tier"`
	Verified int    `json:"verifiedTier"`
}

// Save ends a claim: it stores the outcome, and writes a change for each agent whose file names the domain when readers
// see another manifest than before. It changes nothing where the claim expired and another worker has the domain.
func Save(ctx context.Context, db *store.DB, c Claim, r Result) error {
	ctx, cancel := context.WithTimeout(ctx, store.DocumentTimeout)
	defer cancel()
	return db.InTx(ctx, pgx.TxOptions{}, "save manifest", func(tx pgx.Tx) error {
		before, parser, found, err := readVisible(ctx, tx, c)
		if err != nil || !found {
			return err
		}
		switch {
		case r.Content != nil:
			err = saveContent(ctx, tx, c, r.Content, before, parser)
		case r.Gone != "":
			err = saveGone(ctx, tx, c.Domain, r.Gone)
		default:
			err = saveFailure(ctx, tx, c.Domain, r.Down)
		}
		if err != nil {
			return err
		}
		if err := finish(ctx, tx, c.Domain, r); err != nil {
			return err
		}
		if err := addChanges(ctx, tx, c.Domain, before); err != nil {
			return err
		}
		return docdb.UnclaimHost(ctx, tx, c.Host)
	})
}

// readVisible locks the row of a claim, and returns what readers see; found is false where the claim is another's.
func readVisible(ctx context.Context, tx pgx.Tx, c Claim) (v visible, parser int, found bool, err error) {
	rows, _ := tx.Query(ctx, `
		select state, sha256, declared, verified, parser from manifests where domain = $1 and claimed_until = $2 for update`,
		c.Domain, c.Until)
	v.Domain = c.Domain
	_, err = pgx.ForEachRow(rows, []any{&v.State, &v.SHA256, &v.Declared, &v.Verified, &parser}, func() error {
		found = true
		return nil
	})
	return v, parser, found, err
}

// saveContent stores what a domain serves. Intents are written only when they may differ.
func saveContent(ctx context.Context, tx pgx.Tx, c Claim, m *Content, before visible, parser int) error {
	sum := sha256.Sum256(m.Body)
	_, err := tx.Exec(ctx, `
		update manifests set state = $2, url = $3, etag = $4, last_modified = $5, body = $6, sha256 = $7, parser = $8,
			format = $9, title = $10, payout = $11, declared = $12, verified = $13, verdict = $14, errors = $15,
			warnings = $16, fetched_at = now(), verified_at = case when $17 then now() else verified_at end, failures = 0,
			reason = '', detail = ''
		where domain = $1`, c.Domain, m.State, m.URL, m.ETag, m.LastModified, m.Body, sum[:], m.Parser, m.Format,
		column.CleanText(m.Title), m.Payout, m.Declared, m.Verified, m.Verdict, m.Errors, m.Warnings, m.Complete)
	if err == nil && !m.Unmeasured {
		err = saveLatency(ctx, tx, c, m)
	}
	if err != nil || before.State == m.State && parser == m.Parser && string(before.SHA256) == string(sum[:]) {
		return err
	}
	return saveIntents(ctx, tx, c.Domain, m)
}

// maxLatencies is how many measurements of a domain are kept: at one an hour those of the last eight days. The quantile
// 0.99 needs a hundred.
const maxLatencies = 200

// saveLatency keeps a measurement of a domain whose manifest promises something measurable, and forgets those of
// others. An endpoint whose probes failed twice in a row was down between them. What was measured by another rule than
// the one that holds now is dropped.
func saveLatency(ctx context.Context, tx pgx.Tx, c Claim, m *Content) error {
	_, err := tx.Exec(ctx, `
		update manifests set watched_at = case when $2 then coalesce(watched_at, now()) end,
			down_ms = case when not $2 then 0 when $5 and probe_failed_at is not null
				then down_ms + (extract(epoch from now() - probe_failed_at) * 1000)::bigint else down_ms end,
			probe_failed_at = case when $2 and $5 then now() end,
			latencies = case when not $2 then '{}' when $3::integer = 0 then latencies
				else (latencies || $3::integer)[greatest(cardinality(latencies) + 2 - $4::integer, 1):] end
		where domain = $1 and ($2 or watched_at is not null) and probed = $6`, c.Domain, m.Watched,
		min(m.Latency.Microseconds(), math.MaxInt32), maxLatencies, m.ProbeFailed, c.Probed)
	return err
}

// saveIntents replaces the intents of a manifest. Those of a manifest with errors are not used.
func saveIntents(ctx context.Context, tx pgx.Tx, domain string, m *Content) error {
	b := &pgx.Batch{}
	b.Queue(`delete from manifest_intents where domain = $1`, domain)
	b.Queue(`update manifests set intents_xid = pg_current_xact_id() where domain = $1`, domain)
	if m.State == StateOK {
		for i, in := range m.Intents {
			b.Queue(`
				insert into manifest_intents (domain, name, position, description, method, url, parameters, price, protocols,
					networks, terms, words, vector)
				select $1, $2, $3, $4, $5, $6, $7, $8::numeric, $9, $10, $11,
					left(lower(w.name || ' ' || $4 || ' ' || w.parameters), 1000),
					setweight(to_tsvector('english', w.name), 'A') || setweight(to_tsvector('english', left($4, 4000)), 'B') ||
						setweight(to_tsvector('english', left(w.parameters, 4000)), 'C')
				from (select translate($2, '_', ' ') as name, translate(array_to_string($7::text[], ' '), '_', ' ') as parameters) w
				on conflict do nothing`,
				domain, in.Name, i, in.Description, in.Method, in.URL, orNone(in.Parameters), in.Price,
				orNone(in.Protocols), orNone(in.Networks), in.Terms)
		}
	}
	return tx.SendBatch(ctx, b).Close()
}

// saveGone removes what was read of a domain.
func saveGone(ctx context.Context, tx pgx.Tx, domain string, state State) error {
	_, err := tx.Exec(ctx, `
		with old as (delete from manifest_intents where domain = $1)
		update manifests set state = $2, body = null, sha256 = null, url = '', etag = '', last_modified = '', format = '',
			title = '', payout = null, declared = 0, verified = 0, verdict = '{}', errors = 0, warnings = 0, failures = 0,
			latencies = '{}', watched_at = null, down_ms = 0, probe_failed_at = null, intents_xid = pg_current_xact_id()
		where domain = $1`, domain, state)
	return err
}

// saveFailure keeps what was read before, and counts. After patience it proves nothing any more. A host that is down at
// two checks in a row was down between them; for how long it was before the first one, nobody knows.
func saveFailure(ctx context.Context, tx pgx.Tx, domain string, down bool) error {
	var expired bool
	err := tx.QueryRow(ctx, `
		update manifests set failures = failures + 1, probe_failed_at = null,
			down_ms = down_ms + case when $3 and failures > 0 and watched_at is not null
				then (extract(epoch from now() - checked_at) * 1000)::bigint else 0 end,
			state = case when fetched_at is null or body is null or fetched_at < now() - $2::interval then 'failed' else state
				end,
			verified = case when fetched_at < now() - $2::interval then 0 else verified end
		where domain = $1
		returning state = 'failed'`, domain, patience, down).Scan(&expired)
	if err != nil || !expired {
		return err
	}
	_, err = tx.Exec(ctx, `
		with old as (delete from manifest_intents where domain = $1 returning domain)
		update manifests set intents_xid = pg_current_xact_id() where domain in (select domain from old)`, domain)
	return err
}

// finish ends the claim of a domain.
func finish(ctx context.Context, tx pgx.Tx, domain string, r Result) error {
	_, err := tx.Exec(ctx, `
		update manifests set claimed_until = null, checked_at = now(), due_at = now() + $2::interval, reason = $3,
			detail = $4, robots = case when $6::timestamptz is null then robots else $5 end,
			robots_until = coalesce($6, robots_until)
		where domain = $1`, domain, r.Wait, r.Reason, column.CleanText(r.Detail), orNone(r.Robots),
		column.MaybeTime(r.RobotsUntil))
	return err
}

// maxChanges is the most agents that one change of a manifest is told of: a domain that more agents name is a platform.
const maxChanges = 1000

// addChanges writes the change feed when readers see another manifest than before.
func addChanges(ctx context.Context, tx pgx.Tx, domain string, before visible) error {
	now := visible{Domain: domain}
	err := tx.QueryRow(ctx, `select state, sha256, declared, verified from manifests where domain = $1`, domain).
		Scan(&now.State, &now.SHA256, &now.Declared, &now.Verified)
	if err != nil || now.State == before.State && string(now.SHA256) == string(before.SHA256) &&
		now.Declared == before.Declared && now.Verified == before.Verified {
		return err
	}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into changes (chain_id, kind, block, log_index, token_id, data)
		select a.chain_id, 'manifest.updated', 0, 0, a.token_id, $2::jsonb from (
			select distinct a.chain_id, a.token_id from domains w
			join uris u on u.sha256 = w.sha256 join agents a on a.uri_id = u.id
			where w.domain = $1 and `+docdb.DeniedDocument("u", "a")+` is null
			order by a.chain_id, a.token_id limit $3) a`, domain, string(data), maxChanges)
	return err
}

// orNone returns an empty list for nil, which would be stored as null.
func orNone(list []string) []string { return append([]string{}, list...) }
