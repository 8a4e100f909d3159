package searchdb

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"repute/store/searchtext"
)

// Match is how much of a text the agents of a search have.
type Match string

// A search returns the agents of the first mode that finds any.
const (
	// MatchAll: all words, or all that the text's operators ask for.
	MatchAll Match = "all"
	// MatchMost: more than half of the words, or one of two.
	MatchMost Match = "most"
	// MatchNear: a name with similar words, for misspelled ones.
	MatchNear Match = "near"
)

// matches returns the modes in which a text is searched, in order. A text with operators and an
// agent's id are searched only as written.
func matches(text string) []Match {
	switch folded := searchtext.Folded(text, maxSearchFolded); {
	case text == "":
		return []Match{""}
	case hasOperators(folded), isAgentID(folded):
		return []Match{MatchAll}
	default:
		return []Match{MatchAll, MatchMost, MatchNear}
	}
}

// Classes of matches, which order the results: the higher the better. Classes below that of an
// exact name say where the words are.
const (
	classChain   = 9 // the id, address or URI is the agent's own, on the chain
	classExact   = 8 // the name is the text, or an endpoint is the URL
	classHost    = 7 // an endpoint is on the host
	className    = 5 // the name has all words
	classParts   = 4 // the name has all words as parts of its own
	classLabels  = 2 // name, services, skills, domains, trust models and tags have them
	classAny     = 1 // the document has them, in the end in the hosts of its endpoints
	classNearest = 0 // words of the document have them as parts
)

// textMatch is the SQL that finds the documents and agents that match a text.
type textMatch struct {
	// parts are disjoint conditions on searchable s, best first. Each finds at most maxHits
	// documents, so that a worse one does not displace better documents.
	parts []string
	// class is the SQL of how well s matches.
	class string
	// agents are statements that find further rows of agents a, with their class.
	agents []string
	// wider are the parts that are used when no agent matches parts; nil for none.
	wider []string
	// partial says that matching documents are left out on purpose: see matchMost.
	partial bool
}

// widen replaces the conditions by wider ones, and reports whether there are any.
func (m *textMatch) widen() bool {
	if m == nil || m.wider == nil {
		return false
	}
	m.parts, m.wider = m.wider, nil
	return true
}

// with returns the SQL of relation doc, the matching documents that an agent of the filter has, and
// of relation a, these agents with the class of the match. onDocument and onAgent are the filter's
// conditions. Unless ranked, the class is not computed, because that reads long texts.
func (m *textMatch) with(ranked bool, onDocument, onAgent string) string {
	agents := "a.chain_id = any($1::bigint[])" + onAgent
	onDocument += " and exists (select from uris u join agents a on a.uri_id = u.id where u.sha256 = s.sha256 and " +
		agents + ")"
	class := m.class
	if !ranked {
		class = "case when false then " + m.class + " else 0 end" // its parameters need types
	}
	var docs []string
	without := ""
	for _, part := range m.parts {
		docs = append(docs, fmt.Sprintf("(select s.sha256, %s as class from searchable s where %s%s%s limit %d)", class,
			part, without, onDocument, maxHits))
		without += " and not (" + part + ")"
	}
	rows := fmt.Sprintf(`select a.*, doc.class from doc join uris u on u.sha256 = doc.sha256 join agents a on a.uri_id = u.id
		where %s limit %d`, agents, maxHits)
	if m.agents != nil {
		rows = "select distinct on (chain_id, token_id) * from ((" + strings.Join(append(slices.Clone(m.agents), rows),
			")\nunion all (") + ")" +
			") a order by chain_id, token_id, class desc"
	}
	return "with doc as materialized (" + strings.Join(docs, "\nunion all ") + "),\na as materialized (" + rows + ")"
}

// hitCount returns the SQL of how many documents or agents were found; at maxHits there may be
// more.
func (q *agentQuery) hitCount() string {
	if q.match == nil {
		return "0"
	}
	if q.match.partial {
		return strconv.Itoa(maxHits)
	}
	return "greatest((select count(*) from doc), (select count(*) from a))"
}

// matchText adds the text. A mode that cannot match the text finds no document. typed is the text
// before it was folded, because URIs are compared exactly.
func (q *agentQuery) matchText(ctx context.Context, tx pgx.Tx, text, typed string, mode Match) error {
	q.match = &textMatch{class: "0"}
	q.where += fmt.Sprintf(" and (x.denied is null or a.class = %d)", classChain)
	switch mode {
	case MatchMost:
		words, err := indexedWords(ctx, tx, text)
		if err != nil {
			return err
		}
		return q.matchMost(ctx, tx, words)
	case MatchNear:
		q.matchNear(text)
	default:
		q.matchAll(text, typed)
	}
	return nil
}

// matchAll finds documents with all words: whole words in any English form, words of dense scripts
// anywhere and, where the text has no operators, parts of words.
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
	exact := "s.title = " + q.arg(searchtext.AsWords(text))
	m.parts, m.class = []string{exact}, fmt.Sprintf("when %s then %d", exact, classExact)
	q.matchID(text)
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

// partsOfWords returns the conditions that a name, and that any text, contains all words as parts.
func (q *agentQuery) partsOfWords(text string) (names, anywhere string) {
	var inName, inWords []string
	for _, word := range strings.Fields(text) {
		if word = strings.TrimFunc(word, searchtext.IsNoLetter); word == "" {
			continue
		}
		pattern := q.arg("%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%")
		inName, inWords = append(inName, "s.name like "+pattern), append(inWords, "s.words like "+pattern)
	}
	return strings.Join(inName, " and "), "(" + strings.Join(inWords, " and ") + ")"
}

// matchNear finds names with a similar word for each word of the text; the most similar come first.
func (q *agentQuery) matchNear(text string) {
	var near []string
	class := "0"
	for _, word := range strings.FieldsFunc(text, searchtext.IsNoLetter) {
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
