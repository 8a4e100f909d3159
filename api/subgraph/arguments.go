package subgraph

import (
	"cmp"
	"errors"
	"math"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"repute/store/subgraphdb"
)

// Sizes of pages, those of graph-node.
const (
	defaultFirst = 100
	maxFirst     = 1000
	maxSkip      = math.MaxUint32
)

// page says which entities of a list are read. first is from 1 to maxFirst. The zero order is by id.
type page struct {
	first, skip int
	order       subgraphdb.Order
	where       subgraphdb.Filter
}

// page returns the arguments of a list. Arguments that a list does not have are ignored. A failure is noted and the
// page is still returned, so that one answer tells all mistakes of a query.
func (o *operation) page(e *subgraphdb.Entity, field *ast.Field) (p page) {
	p.first = o.integer(field, "first", defaultFirst, 1, maxFirst)
	p.skip = o.integer(field, "skip", 0, 0, maxSkip)
	p.order = o.order(e, field)
	where, f := o.argument(field, "where")
	if f == nil && where != nil {
		p.where, f = o.filter(e, where, maxNesting)
	}
	if f != nil {
		o.fail(f)
	}
	return p
}

// integer returns an argument that is a number from least to most. The error says 0 as the lower bound also where it is
// 1, because these are the words of graph-node.
func (o *operation) integer(field *ast.Field, name string, fallback, least, most int) int {
	v, f := o.argument(field, name)
	if f != nil {
		o.fail(f)
	}
	if v == nil {
		return fallback
	}
	n, err := strconv.ParseInt(textOf(v), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && (n < int64(least) || n > int64(most)):
		o.fail(failed("The `%s` argument must be between 0 and %d, but is %s", name, most, textOf(v)))
	case err != nil:
		o.fail(invalidArgument(field.Position, name, v))
	}
	return int(n)
}

// textOf returns a number, an enum or a text as a text; empty for other values.
func textOf(v any) string {
	switch v := v.(type) {
	case number:
		return string(v)
	case enum:
		return string(v)
	case string:
		return v
	}
	return ""
}

// order returns the order of a list. Enums may be quoted. Aggregations are ordered by time, the newest first, unless
// the query names an order.
func (o *operation) order(e *subgraphdb.Entity, field *ast.Field) (order subgraphdb.Order) {
	if by, f := o.argument(field, "orderBy"); f != nil {
		o.fail(f)
	} else if by != nil {
		var found bool
		if order, found = o.schema.order(e, textOf(by)); !found {
			o.fail(invalidArgument(field.Position, "orderBy", by))
		}
	}
	direction, f := o.argument(field, "orderDirection")
	switch {
	case f != nil:
		o.fail(f)
	case direction == nil && order.Field == nil && e.Aggregation:
		return subgraphdb.Order{Field: e.Field("timestamp"), Desc: true}
	case direction == nil, textOf(direction) == "asc":
	case textOf(direction) == "desc":
		order.Desc = true
	default:
		o.fail(invalidArgument(field.Position, "orderDirection", direction))
	}
	return order
}

// interval returns the interval of an aggregation.
func (o *operation) interval(field *ast.Field) (i subgraphdb.Interval) {
	of, f := o.argument(field, "interval")
	current, g := o.argument(field, "current")
	switch {
	case f != nil || g != nil:
		o.fail(cmp.Or(f, g))
	case of == nil:
		o.fail(failedAt(field.Position, "No value provided for required argument: `interval`"))
	case textOf(of) != "hour" && textOf(of) != "day":
		o.fail(invalidArgument(field.Position, "interval", of))
	case current != nil && textOf(current) != "include" && textOf(current) != "exclude":
		o.fail(invalidArgument(field.Position, "current", current))
	}
	return subgraphdb.Interval{Day: textOf(of) == "day", Current: textOf(current) == "include"}
}

// filter returns the condition of a filter object: all of its members must be true. The order of the members does not
// matter. An empty object is true of all entities. depth is what may still nest.
func (o *operation) filter(e *subgraphdb.Entity, v any, depth int) (out subgraphdb.Filter, f *SubgraphError) {
	object, isObject := v.(map[string]any)
	switch {
	case !isObject:
		return out, failed("Filter must by an object")
	case depth == 0:
		return out, tooExpensive()
	}
	for name, value := range object {
		if o.conditions++; o.conditions > maxConditions {
			return out, tooExpensive()
		}
		one, f := o.condition(e, name, value, depth)
		if f != nil {
			return out, f
		}
		out.And = append(out.And, one)
	}
	return out, nil
}

// condition returns the condition of one member of a filter. A condition on an entity that the field refers to is true
// where such an entity exists and meets it.
func (o *operation) condition(e *subgraphdb.Entity, name string, value any,
	depth int) (out subgraphdb.Filter, f *SubgraphError) {
	switch name {
	case "and":
		out.And, f = o.filters(e, value, depth)
		return out, f
	case "or":
		out.Or, f = o.filters(e, value, depth)
		return out, f
	case "_change_block":
		return changed(value)
	}
	member, known := o.schema.filters[e][name]
	switch {
	case !known:
		return out, failed("Entity `%s` has no attribute `%s`", e.Name, name)
	case member.child:
		to := o.schema.table.Entity(member.field.To)
		if _, isObject := value.(map[string]any); !isObject {
			return out, failed("Query contains value with invalid type `%s`: `%s`", to.Name, describe(value))
		}
		child, f := o.filter(to, value, depth-1)
		return subgraphdb.Filter{Field: member.field, Child: &child}, f
	}
	return o.comparison(member, value)
}

// filters returns the conditions of a list of filters; nil for an empty list, which is no condition. A single object
// counts as a list of one, as in every list of GraphQL.
func (o *operation) filters(e *subgraphdb.Entity, v any, depth int) (out []subgraphdb.Filter, f *SubgraphError) {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, one := range list {
		c, f := o.filter(e, one, depth-1)
		if f != nil {
			return nil, f
		}
		out = append(out, c)
	}
	return out, nil
}

// changed returns the condition that rows changed at a block or later. Other members of the object are ignored, as by
// graph-node.
func changed(v any) (out subgraphdb.Filter, f *SubgraphError) {
	object, _ := v.(map[string]any)
	n, err := strconv.ParseInt(textOf(object["number_gte"]), 10, 64)
	if err != nil {
		return out, failed("Filter must by an object")
	}
	return subgraphdb.Filter{ChangedFrom: &n}, nil
}

// comparison returns the comparison of a field with a value. The cases of null come first: = null and not null are
// conditions, and null with any other operator is an error. A list where one value is wanted is an error, and one value
// where a list is wanted is a list of one.
func (o *operation) comparison(m filterField, value any) (out subgraphdb.Filter, f *SubgraphError) {
	out = subgraphdb.Filter{Field: m.field, Op: m.op}
	many := m.field.List || m.op == subgraphdb.In || m.op == subgraphdb.NotIn
	list, isList := value.([]any)
	switch {
	case value == nil && m.field.List && m.op == subgraphdb.Equal:
		return subgraphdb.Filter{Or: []subgraphdb.Filter{}}, nil // no list is null
	case value == nil && m.field.List && m.op == subgraphdb.Not:
		return subgraphdb.Filter{}, nil
	case value == nil && (many || m.op != subgraphdb.Equal && m.op != subgraphdb.Not):
		return out, failed("Filter not supported by value `null`: `%s`", m.op)
	case isList && !many:
		return out, failed("Query contains value with invalid type `%s`: `%s`", m.inputType(), describe(value))
	case !isList:
		list = []any{value}
	}
	if o.values += len(list); o.values > maxValues {
		return out, tooExpensive()
	}
	for _, v := range list {
		s, f := scalar(m.field, v)
		if f != nil {
			return out, f
		}
		if s == nil && m.field.List {
			return out, failed("Filter not supported by value `null`: `%s`", m.op)
		}
		out.Values = append(out.Values, s)
	}
	return out, nil
}
