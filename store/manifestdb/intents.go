package manifestdb

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
)

// IntentFilter selects intents. Zero values select all.
type IntentFilter struct {
	Text     string
	Protocol string         // of payment
	Network  string         // of payment
	MaxPrice *string        // a decimal: intents with a known price of at most this
	Tier     *int           // the least verified tier of the manifest
	MinScore *repute.Points // see scored
	Limit    int
}

// FoundIntent is an intent that a filter found.
type FoundIntent struct {
	Domain                         string
	Declared, Verified             int
	FetchedAt                      time.Time
	Stale                          bool // the last check failed
	Name, Description, Method, URL string
	Parameters                     []string
	Price                          *string
	Protocols, Networks            []string
	Terms                          json.RawMessage
	Rank                           float64 // of the text, higher is better; 0 without a text
}

// anyWord is the SQL of the query for any word of $1: intents that have some of the words are found, those that have
// more of them first.
const anyWord = `(select coalesce(string_agg('''' || replace(replace(l, '\', '\\'), '''', '''''') || '''', ' | '), '')::tsquery
	from unnest(tsvector_to_array(to_tsvector('english', $1))) l)`

// How many matches are ranked: a word that most intents have would otherwise make a search read all of them, and
// similarity costs more to compute.
const (
	mostRanked  = 10_000
	mostSimilar = 1000
)

// leastSimilarity is the similarity of trigrams, 0 to 1, from which a text is spelt like one that none has: less finds
// mostly what has nothing to do with it.
const leastSimilarity = "0.35"

// Intents returns the intents of a filter. With a text the best matches are first: those with its words, by the weight
// of where they are, and where no intent has any, those spelt similarly. Otherwise the highest verified tier is first.
func Intents(ctx context.Context, db *store.DB, f IntentFilter) (found []FoundIntent, err error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return nil, err
	}
	f.Text = strings.TrimSpace(store.CleanText(f.Text))
	err = chaindb.View(ctx, db, "search intents", func(ctx context.Context, tx pgx.Tx) error {
		rank, match := "0", "$1 = ''"
		if f.Text != "" {
			rank, match = "ts_rank(i.vector, w.query)", "i.vector @@ w.query"
		}
		if found, err = f.search(ctx, tx, rank, match, mostRanked); err != nil || len(found) > 0 || f.Text == "" {
			return err
		}
		_, err = tx.Exec(ctx, `select set_config('pg_trgm.word_similarity_threshold', $1, true)`, leastSimilarity)
		if err != nil {
			return err
		}
		found, err = f.search(ctx, tx, "word_similarity(lower($1), i.words)", "lower($1) <% i.words", mostSimilar)
		return err
	})
	return found, err
}

// search returns the intents that match, ordered by rank. At most most of them are ranked.
func (f IntentFilter) search(ctx context.Context, tx pgx.Tx, rank, match string, most int) ([]FoundIntent, error) {
	q, first := question{args: []any{f.Text}}, ""
	if f.Text == "" { // the order needs no text, so that the first are found without ranking any
		first, most = " order by m.verified desc, m.domain, i.position", f.Limit
	}
	q.and(match)
	f.conditions(&q)
	rows, err := tx.Query(ctx, `
		with w as materialized (select `+anyWord+` as query),
		c as materialized (
			select i.domain, i.name, (`+rank+`)::float8 as rank
			from w cross join manifest_intents i join manifests m on m.domain = i.domain
			where m.state = 'ok' and `+denied+` is null`+q.where+first+`
			limit `+q.arg(most)+`)
		select m.domain, m.declared, m.verified, m.fetched_at, m.reason <> '', i.name, i.description, i.method, i.url,
			i.parameters, i.price::text, i.protocols, i.networks, i.terms, c.rank
		from c join manifest_intents i on (i.domain, i.name) = (c.domain, c.name) join manifests m on m.domain = c.domain
		order by c.rank desc, m.verified desc, m.domain, i.position limit `+q.arg(f.Limit), q.args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (i FoundIntent, err error) {
		return i, row.Scan(&i.Domain, &i.Declared, &i.Verified, &i.FetchedAt, &i.Stale, &i.Name, &i.Description, &i.Method,
			&i.URL, &i.Parameters, &i.Price, &i.Protocols, &i.Networks, &i.Terms, &i.Rank)
	})
}

// conditions adds what a filter asks for beside the text.
func (f IntentFilter) conditions(q *question) {
	if f.Protocol != "" {
		q.and(q.arg(f.Protocol) + " = any(i.protocols)")
	}
	if f.Network != "" {
		q.and(q.arg(f.Network) + " = any(i.networks)")
	}
	if f.MaxPrice != nil {
		q.and("i.price <= " + q.arg(*f.MaxPrice) + "::numeric")
	}
	if f.Tier != nil {
		q.and("m.verified >= " + q.arg(*f.Tier))
	}
	if f.MinScore != nil {
		q.and(scored("m.domain", q.arg(int64(*f.MinScore))))
	}
}

// scored returns the SQL of whether a rated agent that names a domain as its own has at least a score. The agent says
// so on the chain: a domain cannot give itself the score of another's agent.
func scored(domain, least string) string {
	return `exists (select from domains d join uris u on u.sha256 = d.sha256 join agents a on a.uri_id = u.id
		join trust_scores ts on true join trust_runs tr on true
		where d.domain = ` + domain + ` and ` + query.Scored() + ` and ts.status = 'rated' and ts.score >= ` + least + `)`
}
