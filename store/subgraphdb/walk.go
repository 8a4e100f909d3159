package subgraphdb

import (
	"strings"
)

// maxTokenDigits is how many decimal digits a token id has at most.
const maxTokenDigits = 78

// walks reports whether the rows of a query are ordered by ids of many tokens, so that walk finds the page sooner than
// a sort of all rows.
func (b *builder) walks(q Query) bool {
	f := q.Order.Field
	byID := f == nil || q.Order.Of == nil && (f == q.Entity.ID() || f.Order != nil && len(f.Order) == 0)
	return byID && q.Entity.Key.byToken() && !b.ofOneToken(q)
}

// walk returns the statement of the keys of a page in the order of ids, which is that of texts: 10 is before 9. No
// index has this order, but numbers with equally many digits are ordered alike as numbers and as texts. So the first
// rows of each number of digits are read from an index by token id, and merged.
func (b *builder) walk(q Query) string {
	e := q.Entity
	low, high := tokensOf(q.Where.idRange(e, b.chain))
	token, id := at(e.Key.Parts[0].SQL, 0), b.orderOf(e, e.ID(), 0)
	keys := append(keyColumns(e), id[0]+" as id")
	inner := "select " + strings.Join(keys, ", ") + b.rows(q, " and "+token+" between n.low and n.high") +
		" order by " + directed(e.Key.within(e.ID().Key, 0), q.Order.Desc) + " limit " + b.arg(q.First+q.Skip) +
		"::bigint"
	return "select w.* from unnest(" + b.arg(low) + "::text[]::numeric[], " + b.arg(high) +
		"::text[]::numeric[]) as n(low, high)" +
		" cross join lateral (" + inner +
		") w where n.low <= (select max(x.token_id) from agents x where x.chain_id = $1)" +
		" order by " + directed([]string{"w.id"}, q.Order.Desc) + " limit " + b.arg(q.First) + "::bigint offset " +
		b.arg(q.Skip) + "::bigint"
}

// idRange is between which ids, without the prefix of the chain, all rows of a filter are. Empty texts are no bounds.
type idRange struct{ from, to string }

// idRange returns the range of ids that the comparisons of a filter leave.
func (f *Filter) idRange(e *Entity, chain uint64) (r idRange) {
	for _, c := range f.all() {
		if c.Field != e.ID() || len(c.Values) != 1 {
			continue
		}
		id, _ := c.Values[0].(string)
		rest, ours := strings.CutPrefix(id, e.Key.prefix(chain))
		switch {
		case !ours:
		case c.Op == Greater || c.Op == GreaterEqual:
			r.from = max(r.from, rest)
		case (c.Op == Less || c.Op == LessEqual) && (r.to == "" || rest < r.to):
			r.to = rest
		}
	}
	return r
}

// tokensOf returns the least and the greatest token id of each number of digits that ids of a range begin with.
func tokensOf(r idRange) (low, high []string) {
	from, to := leadingDigits(r.from), leadingDigits(r.to)
	for n := 1; n <= maxTokenDigits; n++ {
		least, most := "1"+strings.Repeat("0", n-1), padded(to, n, "9")
		if n == 1 {
			least = "0"
		}
		if least = max(least, padded(from, n, "0")); least <= most {
			low, high = append(low, least), append(high, most)
		}
	}
	return low, high
}

// leadingDigits returns the digits that a text begins with.
func leadingDigits(s string) string { return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))] }

// padded returns the first n characters of a text, with more of one where it has fewer.
func padded(s string, n int, more string) string {
	return s[:min(len(s), n)] + strings.Repeat(more, max(0, n-len(s)))
}
