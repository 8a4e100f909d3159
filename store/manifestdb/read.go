package manifestdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Manifest is what is known of a domain's manifest.
type Manifest struct {
	Domain                     string
	State                      State
	Listed                     bool
	URL, Format, Title         string
	SHA256                     []byte // nil without a body
	Declared, Verified         int
	Verdict                    json.RawMessage
	Errors, Warnings           int
	Intents                    int64
	FetchedAt, CheckedAt, Next time.Time
	Failures                   int
	Reason, Detail             string
	Body                       []byte // only of Read
	Watch                      Watch  // only of Read
}

// Watch is what the crawl measured of a host whose manifest promises something measurable.
type Watch struct {
	Latencies []int32       // microseconds, of the last requests for the manifest or, if Probed, probes; the newest last
	Since     time.Time     // zero where nothing is measured
	Down      time.Duration // the time between failed checks or probes, since then
	Probed    bool          // an operator lets the crawl probe an endpoint
}

// Filter selects manifests. Zero values select all.
type Filter struct {
	Declared, Verified *int   // exactly this tier
	Prefix             string // of the domain
	State              State
	Priced             *bool // whether an intent has a price
	Network            string
	After              string
	Limit              int
}

// manifestColumns are the columns of Manifest but the body.
const manifestColumns = `m.domain, m.state, m.listed, m.url, m.format, m.title, m.sha256, m.declared, m.verified, m.verdict,
	m.errors, m.warnings, (select count(*) from manifest_intents i where i.domain = m.domain), m.fetched_at, m.checked_at,
	m.due_at, m.failures, m.reason, m.detail`

// scanManifest reads manifestColumns, and what follows them.
func scanManifest(row pgx.CollectableRow, more ...any) (m Manifest, err error) {
	var fetched, checked *time.Time
	err = row.Scan(append([]any{&m.Domain, &m.State, &m.Listed, &m.URL, &m.Format, &m.Title, &m.SHA256, &m.Declared,
		&m.Verified, &m.Verdict, &m.Errors, &m.Warnings, &m.Intents, &fetched, &checked, &m.Next, &m.Failures,
		&m.Reason,
		&m.Detail}, more...)...)
	m.FetchedAt, m.CheckedAt = column.TimeOf(fetched), column.TimeOf(checked)
	return m, err
}

// question collects the conditions of a statement and their arguments.
type question struct {
	where string
	args  []any
}

// arg adds an argument and returns its placeholder. Texts of callers may be any bytes; one that Postgres refuses is
// equal to nothing that is stored.
func (q *question) arg(v any) string {
	if s, is := v.(string); is {
		v = column.CleanText(s)
	}
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// and adds a condition.
func (q *question) and(condition string) { q.where += " and " + condition }

// List returns the manifests of a filter, ordered by domain.
func List(ctx context.Context, db *store.DB, f Filter) (page store.Page[Manifest], err error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return page, err
	}
	asked, err := store.CursorFor("manifests", f.Declared, f.Verified, f.Prefix, f.State, f.Priced, f.Network)
	if err != nil {
		return page, err
	}
	after, begun, err := store.DecodeCursor[string](asked, f.After)
	if err != nil {
		return page, err
	}
	q := f.question()
	if begun {
		q.and("m.domain > " + q.arg(after))
	}
	err = chaindb.View(ctx, db, "list manifests", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `select `+manifestColumns+` from manifests m where `+denied+` is null`+q.where+
			` order by m.domain limit `+q.arg(f.Limit+1), q.args...)
		items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Manifest, error) { return scanManifest(row) })
		if err != nil {
			return err
		}
		page.Items, page.Next, err = store.Cut(items, f.Limit, asked, func(m Manifest) string { return m.Domain })
		return err
	})
	return page, err
}

// question returns the conditions of a filter.
func (f Filter) question() (q question) {
	if f.Declared != nil {
		q.and("m.declared = " + q.arg(*f.Declared))
	}
	if f.Verified != nil {
		q.and("m.verified = " + q.arg(*f.Verified))
	}
	if f.State != "" {
		q.and("m.state = " + q.arg(string(f.State)))
	}
	if f.Prefix != "" {
		q.and("starts_with(m.domain, " + q.arg(strings.ToLower(f.Prefix)) + ")")
	}
	has := "exists (select from manifest_intents i where i.domain = m.domain and "
	if f.Priced != nil {
		not := ""
		if !*f.Priced {
			not = "not "
		}
		q.and(not + has + "i.price is not null)")
	}
	if f.Network != "" {
		q.and(has + q.arg(f.Network) + " = any(i.networks))")
	}
	return q
}

// Read returns the manifest of a domain with its bytes, and its links to agents. repute.ErrNotFound: the domain is not
// known. repute.ErrGone: the operator denies it.
func Read(ctx context.Context, db *store.DB, domain string) (m Manifest, links []Link, err error) {
	err = chaindb.View(ctx, db, "read manifest", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `select `+manifestColumns+`, m.body, m.latencies, m.watched_at, m.down_ms, m.probed,
			coalesce(`+denied+`, '') from manifests m where m.domain = $1`, column.CleanText(domain))
		m, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (Manifest, error) {
			var body []byte
			var reason string
			var w Watch
			var since *time.Time
			var down int64
			m, err := scanManifest(row, &body, &w.Latencies, &since, &down, &w.Probed, &reason)
			w.Since, w.Down = column.TimeOf(since), time.Duration(down)*time.Millisecond
			if m.Body, m.Watch = body, w; err == nil && reason != "" {
				err = &repute.DeniedError{Reason: reason}
			}
			return m, err
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: manifest of %.253q", repute.ErrNotFound, domain)
		}
		if err != nil {
			return err
		}
		links, err = linksOf(ctx, tx, db.Options().SharedHosts, domain)
		return err
	})
	return m, links, err
}
