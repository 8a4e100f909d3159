package searchdb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// matchMost finds documents that have more than half of the words, or one of two. Documents with
// more of the words come first, among equals those with more of them in their names. Where more
// than maxHits documents match, narrow selects those that are considered.
func (q *agentQuery) matchMost(ctx context.Context, tx pgx.Tx, words []string) error {
	if len(words) < 2 {
		q.match.parts = []string{"false"}
		return nil
	}
	names := make([]string, len(words))
	class := "0"
	for i, word := range words {
		names[i] = q.arg(word)
		class += fmt.Sprintf(" + case when ts_filter(s.vector, '{a}') @@ %[1]s then %[2]d when s.vector @@ %[1]s then %[3]d else 0 end",
			wordQuery(names[i]), maxSearchWords+2, maxSearchWords+1)
	}
	q.match.parts, q.match.class = []string{"s.vector @@ (" + mostOf(names) + ")"}, class
	return q.narrow(ctx, tx, words, names)
}

// narrow selects the documents that are considered where more than maxHits have most of the words,
// so that the best ones are not left out at random. These are documents with one of the rarest
// words, of which at most maxHits documents have any. Where no agent has such a document, or every
// word is too frequent, the documents of agents with most ratings are considered.
func (q *agentQuery) narrow(ctx context.Context, tx pgx.Tx, words, names []string) error {
	many, err := tooManyHave(ctx, tx, words)
	if err != nil || !many {
		return err
	}
	rarest, err := rarestWords(ctx, tx, words)
	if err != nil {
		return err
	}
	q.match.partial = true
	most := q.match.parts[0]
	if len(rarest) == 0 {
		q.match.parts = []string{most + " and " + ratedDocuments(), most}
		return nil
	}
	some := make([]string, len(rarest))
	for i, word := range rarest {
		some[i] = wordQuery(names[slices.Index(words, word)])
	}
	q.match.parts = []string{most + " and s.vector @@ (" + strings.Join(some, " || ") + ")"}
	q.match.wider = []string{most + " and " + ratedDocuments(), most}
	return nil
}

// ratedDocuments returns the SQL of whether searchable s is the document of one of the maxHits
// agents with most ratings of a chain.
func ratedDocuments() string {
	return fmt.Sprintf(`s.sha256 in (select u.sha256 from unnest($1::bigint[]) as k(chain_id)
		cross join lateral (select uri_id from agents where chain_id = k.chain_id and feedback > 0 order by feedback desc
			limit %d) r
		join uris u on u.id = r.uri_id where u.sha256 is not null)`, maxHits)
}

// tooManyHave reports whether more than maxHits documents have most of the words.
func tooManyHave(ctx context.Context, tx pgx.Tx, words []string) (many bool, err error) {
	names, args := make([]string, len(words)), make([]any, len(words))
	for i, word := range words {
		names[i], args[i] = fmt.Sprintf("$%d::text", i+1), word
	}
	sql := fmt.Sprintf("select count(*) > %d from (select from searchable s where s.vector @@ (%s) limit %d) m",
		maxHits,
		mostOf(names), maxHits+1)
	err = tx.QueryRow(ctx, sql, args...).Scan(&many)
	return many, err
}

// rarestWords returns words of which together no more than maxHits documents have any,
// the rarest first, without those that no document has.
func rarestWords(ctx context.Context, tx pgx.Tx, words []string) ([]string, error) {
	rows, _ := tx.Query(ctx, fmt.Sprintf(`
		select w from (
			select w, sum(hits) over (order by hits, w) as together, hits from unnest($1::text[]) as q(w) cross join lateral (
				select count(*) as hits from (select from searchable s where s.vector @@ %s limit %d) d) n
		) counted where hits > 0 and together <= %d order by hits, w`, wordQuery("w"), maxHits+1, maxHits), words)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// wordQuery returns the full-text query of one word, given as an SQL expression.
func wordQuery(word string) string { return "websearch_to_tsquery('english', " + word + ")" }

// mostOf returns the full-text query for more than half of the words, or for either of two.
func mostOf(words []string) string {
	least := len(words)/2 + 1
	if len(words) == 2 {
		least = 1
	}
	queries := make([]string, len(words))
	for i, word := range words {
		queries[i] = wordQuery(word)
	}
	var some []string
	for _, chosen := range combinations(queries, least) {
		some = append(some, "("+strings.Join(chosen, " && ")+")")
	}
	return strings.Join(some, " || ")
}

// combinations returns all ways to choose n of the values.
func combinations(values []string, n int) (out [][]string) {
	if n == 0 {
		return [][]string{nil}
	}
	for i := 0; i+n <= len(values); i++ {
		for _, rest := range combinations(values[i+1:], n-1) {
			out = append(out, append([]string{values[i]}, rest...))
		}
	}
	return out
}

// indexedWords returns the words of a text that the full-text index holds: articles, for instance,
// are not indexed.
func indexedWords(ctx context.Context, tx pgx.Tx, text string) ([]string, error) {
	var queries []string
	for _, word := range strings.Fields(text) {
		if query := asQuery(word); query != "" && !slices.Contains(queries, query) {
			queries = append(queries, query)
		}
	}
	rows, _ := tx.Query(ctx, `
		select w from unnest($1::text[]) with ordinality as q(w, n)
		where numnode(websearch_to_tsquery('english', w)) > 0 order by n`, queries)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
