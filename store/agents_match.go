package store

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
)

// Match says how the agents of a search have its words.
type Match string

// A search gives agents of the first kind of which there are any.
const (
	MatchAll  Match = "all"  // all words, or all that the text's operators ask for
	MatchMost Match = "most" // more than half of the words; of two either
	MatchNear Match = "near" // a name with words that are nearly the same, for misspelled ones
)

// matches are the modes in which a text is searched for, in order. What is written in
// a query language is taken at its word.
func matches(text string) []Match {
	switch folded := folded(text, maxSearchFolded); {
	case text == "":
		return []Match{""}
	case hasOperators(folded):
		return []Match{MatchAll}
	default:
		return []Match{MatchAll, MatchMost, MatchNear}
	}
}

// Classes of a match, best first. Classes below that of an exact name tell where the
// words are.
const (
	classChain   = 9 // the address or URI is the agent's own, on the chain
	classExact   = 8 // the name is the text, or an endpoint is the URL
	classHost    = 7 // an endpoint is on the host
	className    = 5 // the name has all words
	classParts   = 4 // the name has all words as parts of its own
	classLabels  = 2 // name, services, skills, domains, trust models and tags have them
	classAny     = 1 // the document has them, in the end in the hosts of its endpoints
	classNearest = 0 // words of the document have them as parts
)

// textMatch leads to the documents, and to the agents, that match a text.
type textMatch struct {
	// parts are disjoint conditions on searchable s, best first: each gives no more
	// than maxHits documents, so that those behind do not push the best ones out.
	parts []string
	class string // how well s matches
	// agents are statements that give further rows of agents a, with their class.
	agents []string
}

// with is relation doc, the documents that match, and relation a, their agents with the
// class of the match. Where they are not ranked the class is not computed: what is
// searched is long.
func (m *textMatch) with(ranked bool) string {
	class := m.class
	if !ranked {
		class = "case when false then " + m.class + " else 0 end" // its parameters need types
	}
	var docs []string
	without := ""
	for _, part := range m.parts {
		docs = append(docs, fmt.Sprintf("(select s.sha256, %s as class from searchable s where %s%s limit %d)", class, part, without, maxHits))
		without += " and not (" + part + ")"
	}
	rows := fmt.Sprintf(`select a.*, doc.class from doc join uris u on u.sha256 = doc.sha256 join agents a on a.uri_id = u.id
		where a.chain_id = any($1::bigint[]) limit %d`, maxHits)
	if m.agents != nil {
		rows = "select distinct on (chain_id, token_id) * from ((" + strings.Join(append(slices.Clone(m.agents), rows), ")\nunion all (") + ")" +
			") a order by chain_id, token_id, class desc"
	}
	return "with doc as materialized (" + strings.Join(docs, "\nunion all ") + "),\na as materialized (" + rows + ")"
}

// hitCount is how many documents or agents were found: with maxHits there may be more.
func (q *agentQuery) hitCount() string {
	if q.match == nil {
		return "0"
	}
	return "greatest((select count(*) from doc), (select count(*) from a))"
}

// matchText adds the text. A mode that has nothing to add for it matches no document.
// typed is the text before it was folded: URIs are compared exactly.
func (q *agentQuery) matchText(ctx context.Context, tx pgx.Tx, text, typed string, mode Match) error {
	q.match = &textMatch{class: "0"}
	q.where += fmt.Sprintf(" and (x.denied is null or a.class = %d)", classChain)
	switch mode {
	case MatchMost:
		words, err := indexedWords(ctx, tx, text)
		q.matchMost(words)
		return err
	case MatchNear:
		q.matchNear(text)
	default:
		q.matchAll(text, typed)
	}
	return nil
}

// matchAll finds words whole, in any form of English, those of dense scripts anywhere,
// and, where the text has no sign of a query language, as parts of words.
func (q *agentQuery) matchAll(text, typed string) {
	words := "websearch_to_tsquery('english', " + q.arg(asQuery(text)) + ")"
	hits := "s.vector @@ " + words
	class := fmt.Sprintf(`case when ts_filter(s.vector, '{a}') @@ %[1]s then %[2]d when ts_filter(s.vector, '{a,b}') @@ %[1]s then %[3]d
		when s.vector @@ %[1]s then %[4]d else %[5]d end`, words, className, classLabels, classAny, classNearest)
	m := q.match
	m.class = class
	if hasOperators(text) {
		m.parts = []string{hits}
		return
	}
	exact := "s.title = " + q.arg(asWords(text))
	m.parts, m.class = []string{exact}, fmt.Sprintf("when %s then %d", exact, classExact)
	q.matchPlace(text, typed)
	if hasTrigram(text) {
		names, parts := q.partsOfWords(text)
		m.parts = append(m.parts, names)
		hits = fmt.Sprintf("(%s or %s)", hits, parts)
		class = fmt.Sprintf("case when %s then greatest(%d, %s) else %s end", names, classParts, class, class)
	}
	m.parts = append(m.parts, hits)
	m.class = fmt.Sprintf("case %s else %s end", m.class, class)
}

// partsOfWords are conditions that a name, and that anything, has all words as parts.
func (q *agentQuery) partsOfWords(text string) (names, anywhere string) {
	var inName, inWords []string
	for _, word := range strings.Fields(text) {
		if word = strings.TrimFunc(word, isNoLetter); word == "" {
			continue
		}
		pattern := q.arg("%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%")
		inName, inWords = append(inName, "s.name like "+pattern), append(inWords, "s.words like "+pattern)
	}
	return strings.Join(inName, " and "), "(" + strings.Join(inWords, " and ") + ")"
}

// matchPlace finds a host, a URL or an address: among endpoints, and an agent's own.
func (q *agentQuery) matchPlace(text, typed string) {
	whole, host := placeOf(text)
	if whole == "" {
		return
	}
	m := q.match
	for _, place := range []struct {
		value string
		class int
	}{{whole, classExact}, {host, classHost}} {
		if place.value == "" {
			continue
		}
		at := "s.places @> array[" + q.arg(place.value) + "::text]"
		m.parts, m.class = append(m.parts, at), fmt.Sprintf("%s when %s then %d", m.class, at, place.class)
	}
	limit := fmt.Sprintf(" limit %d", maxHits)
	own := fmt.Sprintf("select a.*, %d as class from agents a where a.chain_id = any($1::bigint[]) and ", classChain)
	if common.IsHexAddress(whole) {
		address := q.arg(common.HexToAddress(whole).Bytes())
		m.agents = []string{own + "a.owner = " + address + limit, own + "a.wallet = " + address + " and a.wallet <> ''" + limit}
	} else if strings.Contains(text, "://") {
		m.agents = []string{own + "a.uri_id in (select id from uris where hash = any(" + q.arg(urisLike(typed)) + "))" + limit}
	}
}

// urisLike are the hashes of URIs that a pasted URL may be: with and without final slash,
// exactly as it was typed otherwise.
func urisLike(typed string) [][]byte {
	bare := strings.TrimRight(strings.TrimSpace(typed), "/")
	one, other := sha(bare), sha(bare+"/")
	return [][]byte{one[:], other[:]}
}

// matchMost finds documents that have more than half of the words, or one of two, and
// puts those with most words first, those with more of them in their names before others. Of
// more than maxHits such documents any are looked at.
func (q *agentQuery) matchMost(words []string) {
	if len(words) < 2 {
		q.match.parts = []string{"false"}
		return
	}
	least := len(words)/2 + 1
	if len(words) == 2 {
		least = 1
	}
	queries := make([]string, len(words))
	class := "0"
	for i, word := range words {
		queries[i] = "websearch_to_tsquery('english', " + q.arg(word) + ")"
		class += fmt.Sprintf(" + case when ts_filter(s.vector, '{a}') @@ %[1]s then %[2]d when s.vector @@ %[1]s then %[3]d else 0 end",
			queries[i], maxSearchWords+2, maxSearchWords+1)
	}
	var some []string
	for _, chosen := range combinations(queries, least) {
		some = append(some, "("+strings.Join(chosen, " && ")+")")
	}
	q.match.parts, q.match.class = []string{"s.vector @@ (" + strings.Join(some, " || ") + ")"}, class
}

// combinations are all ways to choose n of the values.
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

// indexedWords are a text's words that the index of words knows: a text is not found by
// the articles it holds.
func indexedWords(ctx context.Context, tx pgx.Tx, text string) ([]string, error) {
	var queries []string
	for _, word := range strings.Fields(text) {
		if query := asQuery(word); query != "" && !slices.Contains(queries, query) {
			queries = append(queries, query)
		}
	}
	rows, err := tx.Query(ctx, `
		select w from unnest($1::text[]) with ordinality as q(w, n)
		where numnode(websearch_to_tsquery('english', w)) > 0 order by n`, queries)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// matchNear finds names with a word for each of the text's that is nearly the same; the
// nearest come first.
func (q *agentQuery) matchNear(text string) {
	var near []string
	class := "0"
	for _, word := range strings.FieldsFunc(text, isNoLetter) {
		if !hasTrigram(word) {
			continue
		}
		arg := q.arg(word)
		near, class = append(near, "s.name %>> "+arg), class+" + (strict_word_similarity("+arg+", s.name) * 100)::int"
	}
	if near == nil {
		near = []string{"false"}
	}
	q.match.parts, q.match.class = []string{strings.Join(near, " and ")}, class
}

// placeOf is what a text names among the places of a document: whole is an address, a
// host or a URL without its scheme, as placesOf writes it, host is a URL's. Both are ""
// of a text that names no place.
func placeOf(text string) (whole, host string) {
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return "", ""
	}
	if i := strings.LastIndexByte(text, ':'); common.IsHexAddress(text[i+1:]) && strings.Contains(text, "0x") {
		return text[i+1:], ""
	}
	whole, host = endpointOf(text)
	if !strings.Contains(text, "://") && !isHost(host) {
		return "", ""
	}
	if whole == host {
		host = ""
	}
	return whole, host
}

// isHost reports whether a text can be a host of the internet: it has no path and no port,
// and its last label is of letters.
func isHost(s string) bool {
	i := strings.LastIndexByte(s, '.')
	return i > 0 && !strings.ContainsAny(s, "/:") && len(s)-i > minSearchText && !strings.ContainsFunc(s[i+1:], func(r rune) bool { return !unicode.IsLetter(r) })
}

// endpointOf is an endpoint in lower case without scheme, user, query and final slash,
// and its host without www.
func endpointOf(endpoint string) (whole, host string) {
	s := lowered(endpoint, 4*maxSearchPlace)
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "#")
	s, _, _ = strings.Cut(s, "?")
	authority, path, _ := strings.Cut(s, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	authority = strings.TrimPrefix(authority, "www.")
	whole = wholeHead(strings.TrimRight(authority+"/"+path, "/"), maxSearchPlace)
	if u, err := url.Parse("//" + authority); err == nil {
		host = strings.TrimSuffix(u.Hostname(), ".")
	}
	return whole, host
}

// placesOf are where a document's services are: endpoints, their hosts and the domains
// these are in, and addresses.
func placesOf(services []repute.Service) []string {
	var out []string
	for _, s := range services {
		whole, host := endpointOf(s.Endpoint)
		places := []string{whole}
		if i := strings.LastIndexByte(whole, ':'); common.IsHexAddress(whole[i+1:]) {
			places = append(places, whole[i+1:])
		}
		for isHost(host) {
			places = append(places, host)
			_, host, _ = strings.Cut(host, ".")
		}
		for _, p := range places {
			if p != "" && len(out) < maxSearchList && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}
