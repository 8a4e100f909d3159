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
	"repute/store/column"
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
	Kind     string         // of an offer; "" for any. The database itself has intents of manifests alone
	After    string         // cursor of a list without Text
	Limit    int
}

// kindIntent is the kind of the intents of manifests.
const kindIntent = "intent"

// By says how intents were found.
type By string

// Ways to find intents.
const (
	ByFilter  By = "filter"  // there was no text
	ByWords   By = "words"   // of their texts
	ByMeaning By = "meaning" // of their texts, and words
)

// FoundIntents is an answer to a filter.
type FoundIntents struct {
	Items  []FoundIntent
	Next   string // cursor of the next page of a list without text, "" at the end
	By     By
	Margin float64 // by meaning: score of the first match minus that of the next
	Sure   bool    // by meaning: the first match is the one that was meant
}

// FoundIntent is an intent that a filter found, or another offer of an agent. Those of agents have no domain and no
// terms.
type FoundIntent struct {
	Kind                           string
	Agent                          *repute.AgentID // the best one that makes the offer; nil for an intent of a manifest
	Agents                         int64           // that make it
	Domain                         string
	Position                       int
	Declared, Verified             int
	FetchedAt                      time.Time
	Stale                          bool // the last check failed
	Name, Description, Method, URL string
	Parameters                     []string
	Price                          *string
	Protocols, Networks            []string
	Terms                          json.RawMessage
	Rank                           float64 // of the text, higher is better; 0 without a text
	Similarity                     float64 // of the meaning, -1 to 1; 0 where nobody compared it
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

// columnsOfIntent are the columns of FoundIntent but the rank, of manifest m and intent i.
const columnsOfIntent = `m.domain, m.declared, m.verified, m.fetched_at, m.reason <> '', i.name, i.description, i.method,
	i.url, i.parameters, i.price::text, i.protocols, i.networks, i.terms, i.position, `

// scanIntent reads columnsOfIntent and the rank.
func scanIntent(row pgx.CollectableRow) (i FoundIntent, err error) {
	i.Kind = kindIntent
	return i, row.Scan(&i.Domain, &i.Declared, &i.Verified, &i.FetchedAt, &i.Stale, &i.Name, &i.Description, &i.Method,
		&i.URL, &i.Parameters, &i.Price, &i.Protocols, &i.Networks, &i.Terms, &i.Position, &i.Rank)
}

// Intents returns the intents of a filter. With a text the best matches are first: those with its words, by the weight
// of where they are, and where no intent has any, those spelt similarly. Otherwise the highest verified tier is first,
// and a cursor continues the list.
func Intents(ctx context.Context, db *store.DB, f IntentFilter) (found FoundIntents, err error) {
	if err := store.CheckLimit(f.Limit); err != nil {
		return found, err
	}
	f.Text = strings.TrimSpace(column.CleanText(f.Text))
	if f.Kind != "" && f.Kind != kindIntent {
		return FoundIntents{By: ByWords}, nil
	}
	err = chaindb.View(ctx, db, "search intents", func(ctx context.Context, tx pgx.Tx) error {
		if f.Text == "" {
			found, err = f.list(ctx, tx)
			return err
		}
		found.By = ByWords
		found.Items, err = f.search(ctx, tx, "ts_rank(i.vector, w.query)", "i.vector @@ w.query", mostRanked)
		if err != nil || len(found.Items) > 0 {
			return err
		}
		_, err = tx.Exec(ctx, `select set_config('pg_trgm.word_similarity_threshold', $1, true)`, leastSimilarity)
		if err != nil {
			return err
		}
		found.Items, err = f.search(ctx, tx, "word_similarity(lower($1), i.words)", "lower($1) <% i.words", mostSimilar)
		return err
	})
	return found, err
}

// search returns the intents that match, ordered by rank. At most most of them are ranked.
func (f IntentFilter) search(ctx context.Context, tx pgx.Tx, rank, match string, most int) ([]FoundIntent, error) {
	q := question{args: []any{f.Text}}
	q.and(match)
	f.conditions(&q)
	rows, _ := tx.Query(ctx, `
		with w as materialized (select `+anyWord+` as query),
		c as materialized (
			select i.domain, i.name, (`+rank+`)::float8 as rank
			from w cross join manifest_intents i join manifests m on m.domain = i.domain
			where m.state = 'ok' and `+denied+` is null`+q.where+`
			limit `+q.arg(most)+`)
		select `+columnsOfIntent+`c.rank
		from c join manifest_intents i on (i.domain, i.name) = (c.domain, c.name) join manifests m on m.domain = c.domain
		order by c.rank desc, m.verified desc, m.domain, i.position limit `+q.arg(f.Limit), q.args...)
	return pgx.CollectRows(rows, scanIntent)
}

// place is the position of an intent in the list without a text.
type place struct {
	Verified int    `json:"v"`
	Domain   string `json:"d"`
	Position int    `json:"p"`
}

// list returns a page of the intents without a text. Its order needs no rank, so that an index finds the first.
func (f IntentFilter) list(ctx context.Context, tx pgx.Tx) (page FoundIntents, err error) {
	page.By = ByFilter
	asked, err := store.CursorFor("intents", f.Protocol, f.Network, f.MaxPrice, f.Tier, f.MinScore)
	if err != nil {
		return page, err
	}
	after, begun, err := store.DecodeCursor[place](asked, f.After)
	if err != nil {
		return page, err
	}
	var q question
	if begun {
		v, d := q.arg(after.Verified), q.arg(after.Domain)
		q.and("(m.verified < " + v + " or m.verified = " + v + " and (m.domain, i.position) > (" + d + ", " +
			q.arg(after.Position) + "))")
	}
	f.conditions(&q)
	rows, _ := tx.Query(ctx, `
		select `+columnsOfIntent+`0::float8 from manifests m join manifest_intents i on i.domain = m.domain
		where m.state = 'ok' and `+denied+` is null`+q.where+`
		order by m.verified desc, m.domain, i.position limit `+q.arg(f.Limit+1), q.args...)
	items, err := pgx.CollectRows(rows, scanIntent)
	if err != nil {
		return page, err
	}
	page.Items, page.Next, err = store.Cut(items, f.Limit, asked, func(i FoundIntent) place {
		return place{i.Verified, i.Domain, i.Position}
	})
	return page, err
}

// IntentKey names an intent.
type IntentKey struct{ Domain, Name string }

// Allowed returns the intents that a filter allows, whatever its text says.
func Allowed(ctx context.Context, db *store.DB, f IntentFilter) (map[IntentKey]bool, error) {
	out := map[IntentKey]bool{}
	err := chaindb.View(ctx, db, "filter intents", func(ctx context.Context, tx pgx.Tx) error {
		var q question
		f.conditions(&q)
		rows, _ := tx.Query(ctx,
			`select i.domain, i.name from manifests m join manifest_intents i on i.domain = m.domain
			where m.state = 'ok' and `+denied+` is null`+q.where, q.args...)
		var k IntentKey
		_, err := pgx.ForEachRow(rows, []any{&k.Domain, &k.Name}, func() error { out[k] = true; return nil })
		return err
	})
	return out, err
}

// IntentsByKey returns those of some intents that may be shown.
func IntentsByKey(ctx context.Context, db *store.DB, keys []IntentKey) (map[IntentKey]FoundIntent, error) {
	domains, names := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		domains[i], names[i] = k.Domain, k.Name
	}
	out := map[IntentKey]FoundIntent{}
	err := chaindb.View(ctx, db, "read found intents", func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			select `+columnsOfIntent+`0::float8 from unnest($1::text[], $2::text[]) k(domain, name)
			join manifests m on m.domain = k.domain join manifest_intents i on (i.domain, i.name) = (k.domain, k.name)
			where m.state = 'ok' and `+denied+` is null`, domains, names)
		items, err := pgx.CollectRows(rows, scanIntent)
		for _, i := range items {
			out[IntentKey{i.Domain, i.Name}] = i
		}
		return err
	})
	return out, err
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
