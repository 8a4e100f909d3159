package subgraphdb

import (
	"fmt"
	"strings"
)

// statement returns the text of the statement of a query.
func (b *builder) statement(q Query) string {
	columns, names, shared := []string{}, []string{}, false
	for _, c := range q.Columns {
		if c.services != nil && shared {
			continue
		}
		shared = shared || c.services != nil
		for _, sql := range b.columns(q, c) {
			names = append(names, fmt.Sprintf("c%d", len(columns)))
			columns = append(columns, at(sql, 0)+" as "+names[len(columns)])
		}
	}
	if q.hasPlaces() {
		names, columns = append(names, "block"), append(columns, at(q.Order.Field.Block, 0)+" as block")
	}
	switch {
	case q.hasRows():
		return b.pageOfSums(q, columns)
	case q.Parents == nil && b.walks(q):
		return b.pageOf(q, columns, names, b.walk(q))
	case q.Parents == nil:
		return b.list(q, columns, names)
	}
	return b.nested(q, columns, names)
}

// fewSkipped is how many rows before a page are read with all columns, because looking up the rows of the page once
// more by their keys takes longer.
const fewSkipped = 100

// list returns the statement of a page of the rows of the whole chain. A page in the order of an index that begins at a
// place, or near the first row, is read at once: each row is looked up once, with its file.
func (b *builder) list(q Query, columns, names []string) string {
	refers := ""
	if b.from != nil {
		q.Skip, refers = q.Skip-int(b.from.Before), b.behind(q, *b.from)
	}
	if q.Skip == 0 || q.Skip <= fewSkipped && q.hasPlaces() || len(q.Entity.ID().Key) == 0 {
		b.joined = q.hasPlaces()
		return "select " + strings.Join(append([]string{"1::bigint"}, columns...), ", ") + b.page(q, refers)
	}
	return b.pageOf(q, columns, names, "select "+strings.Join(keyColumns(q.Entity), ", ")+b.page(q, refers))
}

// nested returns the statement of the rows of a query of each parent.
func (b *builder) nested(q Query, columns, names []string) string {
	key := q.Of.Key
	if q.Of.Many() {
		key = q.Parent.Key.columns()
	}
	parts, arrays, refers := b.parents(q, key)
	from := "unnest(" + strings.Join(arrays, ", ") + ") with ordinality as k(" +
		strings.Join(append(parts, "n"), ", ") + ")"
	if len(key) == 0 {
		from = "(values (1::bigint)) as k(n)"
	}
	inner := "select " + strings.Join(append(columns, "null"), ", ") + b.page(q, refers)
	return "select k.n, " + strings.Join(append(prefixed("y.", names), "y.r"), ", ") + " from " + from +
		" cross join lateral (select z.*, row_number() over () as r from (" + inner +
		") z) y order by k.n, y.r limit " +
		b.arg(q.Limit) + "::bigint"
}

// keyColumns returns the columns of the key of an entity, named as pageOf expects.
func keyColumns(e *Entity) (out []string) {
	for i, sql := range e.ID().Key {
		out = append(out, fmt.Sprintf("%s as k%d", at(sql, 0), i))
	}
	return out
}

// pageOf returns the statement of a page whose keys another statement finds, in their order. Postgres would compute the
// columns of the skipped rows too.
func (b *builder) pageOf(q Query, columns, names []string, keys string) string {
	refers := ""
	for i, sql := range q.Entity.ID().Key {
		refers += fmt.Sprintf(" and %s = k.k%d", at(sql, 0), i)
	}
	return "select " + strings.Join(append([]string{"1::bigint"}, prefixed("y.", names)...), ", ") +
		" from (select z.*, row_number() over () as r from (" + keys + ") z) k" +
		" cross join lateral (select " + strings.Join(append(columns, "null"), ", ") + " from " + at(q.Entity.From, 0) +
		" where " +
		at(q.Entity.Where, 0) + refers + " limit 1) y order by k.r"
}

// prefixed puts a prefix before each name.
func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}

// parents adds the keys of the parents as arrays and returns the names of their parts, the arrays, and the condition
// that a row belongs to a parent.
func (b *builder) parents(q Query, key []string) (names, arrays []string, refers string) {
	forms, theirs := b.schema.Entity(q.Of.To).Key, q.Entity.Key.columns()
	if q.Of.Many() {
		forms = q.Parent.Key
		if q.Of.Back == "" {
			return nil, nil, ""
		}
		theirs = q.Entity.Field(q.Of.Back).Key
	}
	for i := range key {
		names = append(names, fmt.Sprintf("k%d", i))
		arrays = append(arrays, b.column(forms.Parts[i].Form, q.Parents, i))
		refers += " and " + at(theirs[i], 0) + " = k." + names[i]
	}
	return names, arrays, refers
}

// page returns the SQL of the rows of a query from its tables on.
func (b *builder) page(q Query, refers string) string {
	return b.rows(q, refers) + " order by " + b.ordered(q) + " limit " + b.arg(q.First) + "::bigint offset " +
		b.arg(q.Skip) + "::bigint"
}

// rows returns the SQL of all rows of a query from its tables on, in no order.
func (b *builder) rows(q Query, refers string) string {
	from := at(q.Series.of(q.Entity.From, ""), 0)
	if q.hasRows() {
		from = at(q.Series.of(q.Entity.Rows, ""), 0)
	}
	where := " where " + at(q.Series.of(q.Entity.Where, ""), 0) + refers + " and " +
		q.Series.of(b.condition(q.Entity, 0, &q.Where), "")
	switch {
	case q.computesEvery():
		from += " join (" + q.Order.Field.Every + ") every on every.token_id = " + at(q.Entity.Key.Parts[0].SQL, 0)
	case q.Parents == nil && q.Order.Of == nil && q.Order.Field != nil && q.Order.Field.From != "":
		where += " and " + b.near(q)
	}
	return " from " + from + where
}

// columns returns the SQL of what is read of a field of a query.
func (b *builder) columns(q Query, f *Field) (out []string) {
	if f.services != nil {
		return []string{services(q.Columns)}
	}
	key := f.of.Key
	if f.To != "" {
		key = b.schema.Entity(f.To).Key
	}
	for i, sql := range f.Key {
		if key.Parts[i].Form == FormNumber {
			sql = "(" + sql + ")::text"
		}
		out = append(out, sql)
	}
	if f.Key != nil {
		return out
	}
	x := "(" + f.SQL + ")"
	switch {
	case f.List, f.Type == BigInt, f.Type == Int8, f.Type == Timestamp, f.Type == Status:
		x += "::text"
	case f.Type == BigDecimal:
		x = "trim_scale(" + x + ")::text"
	case f.Raw:
		x = "substring(" + x + " for " + maxText + ")"
	case f.Type == String:
		x = "left(" + x + ", " + maxText + ")"
	}
	return []string{x}
}
