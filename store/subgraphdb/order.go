package subgraphdb

import (
	"slices"
	"strings"
)

// ordered returns the SQL of what a query orders by: its field, then the id, in one direction.
func (b *builder) ordered(q Query) string {
	var by []string
	if f := q.Order.Field; f != nil && (f != q.Entity.ID() || q.Order.Of != nil) {
		by = b.order(q)
	}
	return directed(append(by, b.idOrder(q)...), q.Order.Desc)
}

// directed returns a list of orders in one direction.
func directed(by []string, desc bool) string {
	direction := " asc"
	if desc {
		direction = " desc"
	}
	return strings.Join(by, direction+", ") + direction
}

// idOrder returns what orders the rows of a query like their ids.
func (b *builder) idOrder(q Query) []string {
	if e := q.Entity; b.ofOneToken(q) {
		return e.Key.within(e.ID().Key, 0)
	}
	return b.orderOf(q.Entity, q.Entity.ID(), 0)
}

// ofOneToken reports whether all rows, those of one parent where there are parents, have one token id.
func (b *builder) ofOneToken(q Query) bool {
	e := q.Entity
	if !e.Key.byToken() {
		return false
	}
	token := e.Key.Parts[0].SQL
	if q.Parents != nil {
		return q.Of.Many() && q.Of.Back != "" && e.Field(q.Of.Back).Key[0] == token
	}
	return slices.ContainsFunc(q.Where.all(), func(f *Filter) bool {
		if f.Field == nil || f.Child != nil || len(f.Field.Key) == 0 || f.Field.Key[0] != token ||
			f.Op != Equal && f.Op != In {
			return false
		}
		key := e.Key
		if f.Field.To != "" {
			key = b.schema.Entity(f.Field.To).Key
		}
		keys, null := f.keys(key, b.chain)
		return len(keys) == 1 && !null
	})
}

// all returns the conditions of a filter that must all be true, those of its And included.
func (f *Filter) all() []*Filter {
	out := []*Filter{f}
	for i := range f.And {
		out = append(out, f.And[i].all()...)
	}
	return out
}

// order returns the SQL of what a query orders by before the id.
func (b *builder) order(q Query) []string {
	of := q.Order.Of
	if q.computesEvery() {
		return []string{"every.block"}
	}
	if of == nil {
		return b.orderOf(q.Entity, q.Order.Field, 0)
	}
	to := b.schema.Entity(of.To)
	if of.Inline {
		return []string{"case when " + at(of.Key[len(of.Key)-1], 0) + " is not null then " +
			b.orderOfOther(to, q.Order.Field, 0) + " end"}
	}
	return []string{"(select " + b.orderOfOther(to, q.Order.Field, 1) + " from " + at(to.From, 1) + " where " +
		at(to.Where, 1) +
		b.refers(q.Entity, 0, of, 1) + ")" + q.Order.Field.collation()}
}

// orderOf returns the SQL of what orders rows of an entity by a field.
func (b *builder) orderOf(e *Entity, f *Field, level int) (out []string) {
	if f.Order == nil {
		return []string{b.orderOfOther(e, f, level)}
	}
	for _, sql := range f.Order {
		out = append(out, at(sql, level))
	}
	return out
}

// orderOfOther is orderOf for rows of another entity that refer to entity e.
func (b *builder) orderOfOther(e *Entity, f *Field, level int) string {
	switch {
	case f.Key != nil && f.To == "" && e.Key.Fixed == "" && len(e.Key.Parts) > 0:
		return e.Key.rest(f.Key, level) + collateC
	case f.Key != nil && f.To == "":
		return e.Key.id(f.Key, level) + collateC
	case f.Key != nil:
		return b.schema.Entity(f.To).Key.id(f.Key, level) + collateC
	case f.Block != "":
		return "(" + at(f.Block, level) + ")"
	}
	return "(" + at(f.SQL, level) + ")" + f.collation()
}

// collation returns the collation of a field that is a text: that of its bytes.
func (f *Field) collation() string {
	if f.List || f.Key != nil && f.To == "" {
		return ""
	}
	return f.kind().collate
}

// computesEvery reports whether the block that orders the rows of a query is computed for all rows at once.
func (q *Query) computesEvery() bool {
	f := q.Order.Field
	return q.Parents == nil && q.Order.Of == nil && f != nil && f.Every != "" && (f.From == "" || q.Skip >= manySkipped)
}

// near returns the SQL of a condition that all rows of a page meet and that an index answers. It is for an order by a
// block that has no index, but is never above column Until and never below column From, which have. In descending
// order: of the first rows by Until, as many as are read, the least block is a bound. The page has rows at this block
// or above it alone, and their Until is not below it either.
func (b *builder) near(q Query) string {
	f, where := q.Order.Field, " and "+b.condition(q.Entity, 1, &q.Where)
	column, farthest, sign := f.Until, "min", ">="
	if !q.Order.Desc {
		column, farthest, sign = f.From, "max", "<="
	}
	first := "select " + at(f.Block, 1) + " as block from " + at(q.Entity.From, 1) + " where " + at(q.Entity.Where, 1) +
		where +
		" order by " + directed([]string{at(column, 1)}, q.Order.Desc) + " limit " + b.arg(q.First+q.Skip) + "::bigint"
	return at(column, 0) + " " + sign + " (select " + farthest + "(x.block) from (" + first + ") x)"
}
