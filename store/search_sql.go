package store

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jackc/pgx/v5"

	"repute"
)

// searchQuery is a filter as SQL: conditions on agents a, their URIs u and what
// they are searched by s, and where there is a text how well s matches.
type searchQuery struct {
	hits  string // condition on searchable s, "" without a text
	names string // the same for names that hold all words, "" where parts of words do not count
	class string // how well s matches, "0" without a text
	where string // conditions on a, u and s, each after an "and"
	args  []any  // $1 is the chains
	// needed: only agents with a document can match.
	needed bool
}

// arg adds a parameter and gives its name.
func (q *searchQuery) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *searchQuery) and(format string, v any) { q.where += " and " + fmt.Sprintf(format, q.arg(v)) }

func (f SearchFilter) query() (*searchQuery, error) {
	q := &searchQuery{class: "0", args: []any{nil}}
	if f.Text != "" {
		text, err := checkText(f.Text)
		if err != nil {
			return nil, err
		}
		q.match(text)
	}
	for _, l := range []struct{ field, column, value string }{
		{"service", "services", f.Service}, {"skill", "skills", f.Skill}, {"domain", "domains", f.Domain}, {"trust", "trust", f.Trust},
	} {
		values, err := checkList(l.field, l.value)
		if err != nil {
			return nil, err
		}
		if values != nil {
			q.having("s."+l.column, l.value, values)
		}
	}
	q.flags(f)
	if q.needed {
		q.where += " and x.denied is null"
	}
	return q, q.onChain(f)
}

// having adds that a column holds all values, or the text they were written as.
func (q *searchQuery) having(column, text string, values []string) {
	q.needed = true
	condition := column + " @> " + q.arg(values) + "::text[]"
	if len(values) > 1 {
		condition = fmt.Sprintf("(%s or %s @> array[%s::text])", condition, column, q.arg(lowered(text, len(text)+utf8.UTFMax)))
	}
	q.where += " and " + condition
}

// flags adds conditions on the document that no index serves alone.
func (q *searchQuery) flags(f SearchFilter) {
	if f.X402 != nil {
		q.needed = true
		q.and("s.x402 = %s", *f.X402)
	}
	if f.Active != nil {
		q.needed = true
		q.and("s.active = %s", *f.Active)
	}
	if f.Status != "" {
		q.and("("+documentStatus+") = %s", f.Status)
	}
}

// documentStatus is documentRow.status.
const documentStatus = `case when u.uri = '' then 'none' when x.denied is not null then 'denied'
	when s.errors > 0 then 'invalid' when s.errors = 0 then 'ok' when u.dead then 'dead' when u.reason <> '' then 'failed' else 'pending' end`

// denials is relation x: why the document must not be shown.
func denials() string {
	return ` cross join lateral (select ` + deniedDocument("u", "a") + ` as denied) x`
}

// onChain adds conditions on the agent itself.
func (q *searchQuery) onChain(f SearchFilter) error {
	if f.Status != "" && !slices.Contains(documentStates(), f.Status) {
		return repute.Invalid("status", "no state of a document", "one of "+stateNames())
	}
	if f.MinFeedback < 0 {
		return repute.Invalid("minFeedback", "is negative", "0 or more")
	}
	if f.MinFeedback > 0 {
		q.and("a.feedback >= %s", f.MinFeedback)
	}
	if f.Owner != nil {
		q.and("a.owner = %s", addressBytes(*f.Owner))
	}
	if f.Wallet != nil {
		q.and("a.wallet = %s", addressBytes(*f.Wallet))
	}
	if f.Tag != "" {
		q.and(`exists (select from votes v join tags t on t.id = v.tag1
			where (v.chain_id, v.token_id) = (a.chain_id, a.token_id) and t.hash = %s)`, crypto.Keccak256([]byte(f.Tag)))
	}
	return nil
}

// documentStates are those an agent's document can be in.
func documentStates() []repute.DocumentStatus {
	return []repute.DocumentStatus{repute.DocumentNone, repute.DocumentPending, repute.DocumentOK, repute.DocumentInvalid, repute.DocumentFailed,
		repute.DocumentDead, repute.DocumentDenied}
}

func stateNames() string {
	var names []string
	for _, s := range documentStates() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// match adds the text. Words are found whole, in any form of English, those of dense
// scripts anywhere, and, where the text has no sign of a query language, as parts of
// words; a single word also where a name has nearly the same.
func (q *searchQuery) match(text string) {
	q.needed = true
	words := "websearch_to_tsquery('english', " + q.arg(asQuery(text)) + ")"
	q.hits = "s.vector @@ " + words
	q.class = fmt.Sprintf(`case when ts_filter(s.vector, '{a}') @@ %[1]s then 4 when ts_filter(s.vector, '{a,b}') @@ %[1]s then 2
		when s.vector @@ %[1]s then 1 else 0 end`, words)
	if hasOperators(text) || !hasTrigram(text) {
		return
	}
	whole := q.arg(text)
	var inWords, inName []string
	for _, word := range strings.Fields(text) {
		if word = strings.TrimFunc(word, isNoLetter); word == "" {
			continue
		}
		pattern := q.arg("%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(word) + "%")
		inWords, inName = append(inWords, "s.words like "+pattern), append(inName, "s.name like "+pattern)
	}
	q.hits = fmt.Sprintf("(%s or (%s))", q.hits, strings.Join(inWords, " and "))
	if isWord(text) {
		q.hits = fmt.Sprintf("(%s or %s <%% s.name)", q.hits, whole)
	}
	q.names = strings.Join(inName, " and ")
	q.class = fmt.Sprintf("case when s.name = %s then 5 when %s then greatest(3, %s) else %s end", whole, q.names, q.class, q.class)
}

// from is every agent that matches, as relations a, u, s and x, and class. What is
// searched is long and is read for few: hits are no more than their places, and where
// they are not ranked not even their class. Relation hit is no more than can be ordered
// in time: names that match do not get lost among what else does.
func (q *searchQuery) from(ranked bool) (with, from, class string) {
	if q.hits != "" {
		class = "case when false then " + q.class + " else 0 end" // its parameters need types
		if ranked {
			class = q.class
		}
		part := func(where string) string {
			return fmt.Sprintf("(select s.sha256, %s as class from searchable s where %s limit %d)", class, where, maxHits)
		}
		found := part(q.hits)
		if q.names != "" {
			found = part(q.names) + " union all " + part(q.hits+" and not ("+q.names+")")
		}
		return "with hit as materialized (" + found + ")",
			`hit left join searchable s on s.sha256 = hit.sha256 join uris u on u.sha256 = hit.sha256 join agents a on a.uri_id = u.id` + denials(), "hit.class"
	}
	join := "left join"
	if q.needed {
		join = "join"
	}
	return "", `agents a join uris u on u.id = a.uri_id ` + join + ` searchable s on s.sha256 = u.sha256` + denials(), "0"
}

func chainIDs(chains []*chainView) []uint64 {
	ids := make([]uint64, len(chains))
	for i, c := range chains {
		ids[i] = c.ID
	}
	return ids
}

// withArgs are the parameters of a statement with more of them behind.
func (q *searchQuery) withArgs(chains []*chainView, more ...any) []any {
	args := slices.Concat(q.args, more)
	args[0] = chainIDs(chains)
	return args
}

// count counts to one more than maxCounted.
func (q *searchQuery) count(ctx context.Context, tx pgx.Tx, chains []*chainView) (c Count, err error) {
	with, from, _ := q.from(false)
	var hits int
	err = tx.QueryRow(ctx, fmt.Sprintf(`%s select count(*), %s from (
		select from %s where a.chain_id = any($1::bigint[])%s limit %d) m`, with, q.hitCount(), from, q.where, maxCounted+1),
		q.withArgs(chains)...).Scan(&c.Value, &hits)
	return c.bounded(hits), err
}

// hitCount is how many documents were found, all of which were not if it is maxHits.
func (q *searchQuery) hitCount() string {
	if q.hits == "" {
		return "0"
	}
	return "(select count(*) from hit)"
}

// bounded is what is known when so many documents were looked into.
func (c Count) bounded(hits int) Count {
	return Count{min(c.Value, maxCounted), c.Value > maxCounted || hits >= maxHits}
}

// page reads the entries behind a position.
func (q *searchQuery) page(ctx context.Context, tx pgx.Tx, chains []*chainView, after searchPos, limit int) ([]searchEntry, error) {
	sql, args := q.ranked(chains, after, limit)
	if q.hits == "" {
		sql, args = q.ordered(chains, after, limit)
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e searchEntry, err error) {
		err = row.Scan(&e.id.ChainID, (*tokenNum)(&e.id.TokenID), &e.feedback, &e.class)
		return e, err
	})
}

// ranked orders all matches of a text.
func (q *searchQuery) ranked(chains []*chainView, after searchPos, limit int) (string, []any) {
	with, from, class := q.from(true)
	n := len(q.args)
	return fmt.Sprintf(`%s
		select a.chain_id, a.token_id, a.feedback, %s from %s
		where a.chain_id = any($1::bigint[])%s and (%[2]s, a.feedback, a.chain_id, a.token_id) < ($%[5]d::int, $%[6]d::bigint, $%[7]d::bigint, $%[8]d::numeric)
		order by %[2]s desc, a.feedback desc, a.chain_id desc, a.token_id desc limit $%[9]d`,
			with, class, from, q.where, n+1, n+2, n+3, n+4, n+5),
		q.withArgs(chains, after.Class, after.Feedback, after.Chain, bigNum{tokenOf(after)}, limit)
}

// ordered reads every chain by its own index, as Agents does, because there may be
// no narrower way to what matches. $n+1 is where each chain stands.
func (q *searchQuery) ordered(chains []*chainView, after searchPos, limit int) (string, []any) {
	_, from, _ := q.from(true)
	var tokens []bigNum
	for _, c := range chains {
		switch id := int64(c.ID); {
		case id < after.Chain: // all of its equals are still to come
			tokens = append(tokens, bigNum{new(big.Int).Lsh(big.NewInt(1), 256)})
		case id == after.Chain:
			tokens = append(tokens, bigNum{tokenOf(after)})
		default:
			tokens = append(tokens, bigNum{big.NewInt(-1)})
		}
	}
	n := len(q.args)
	return fmt.Sprintf(`
		select m.chain_id, m.token_id, m.feedback, 0
		from unnest($1::bigint[], $%[3]d::numeric[]) as k(chain_id, token)
		cross join lateral (
			select a.chain_id, a.token_id, a.feedback from %[1]s
			where a.chain_id = k.chain_id and (a.feedback, a.token_id) < ($%[4]d::bigint, k.token)%[2]s
			order by a.feedback desc, a.token_id desc limit $%[5]d) m
		order by m.feedback desc, m.chain_id desc, m.token_id desc limit $%[5]d`, from, q.where, n+1, n+2, n+3),
		q.withArgs(chains, tokens, after.Feedback, limit)
}
