package subgraphdb

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Op is an operator of a filter, as the suffix of its name in graph-node.
type Op string

// Operators that compare a field with values.
const (
	Equal             Op = ""
	Not               Op = "not"
	Greater           Op = "gt"
	Less              Op = "lt"
	GreaterEqual      Op = "gte"
	LessEqual         Op = "lte"
	In                Op = "in"
	NotIn             Op = "not_in"
	Contains          Op = "contains"
	ContainsNoCase    Op = "contains_nocase"
	NotContains       Op = "not_contains"
	NotContainsNoCase Op = "not_contains_nocase"
	StartsWith        Op = "starts_with"
	StartsNoCase      Op = "starts_with_nocase"
	NotStartsWith     Op = "not_starts_with"
	NotStartsNoCase   Op = "not_starts_with_nocase"
	EndsWith          Op = "ends_with"
	EndsNoCase        Op = "ends_with_nocase"
	NotEndsWith       Op = "not_ends_with"
	NotEndsNoCase     Op = "not_ends_with_nocase"
	noOp              Op = "-" // none: And, Or and conditions on other entities
)

// Filter is a condition on rows of an entity. Its zero value is true for all.
type Filter struct {
	// And holds conditions that must all be true.
	And []Filter
	// Or holds conditions of which one must be true, where it is not nil.
	Or []Filter
	// Field is compared by Op with Values: one, or any number of In, NotIn and of operators of lists. A value is a
	// string for texts, ids and numbers in decimal, []byte for Bytes, bool for Boolean, nil for null.
	Field  *Field
	Op     Op
	Values []any
	// Child is a condition on the entities that Field refers to, one of which must meet it.
	Child *Filter
	// ChangedFrom selects rows that changed at this block or later; nil for all.
	ChangedFrom *int64
}

// Size returns the number of conditions and of values in a filter, which its cost follows from.
func (f *Filter) Size() int {
	n := 1 + len(f.Values)
	for _, list := range [][]Filter{f.And, f.Or} {
		for i := range list {
			n += list[i].Size()
		}
	}
	if f.Child != nil {
		n += f.Child.Size()
	}
	return n
}

// builder composes one statement. $1 is the chain.
type builder struct {
	schema *Schema
	chain  uint64
	args   []any
	// firstBlocks are blocks before which all times are earlier.
	firstBlocks map[since]int64
	// from is a place before the page, nil where the rows before it are skipped one by one.
	from *place
	// joined says that a condition may test a joined column for null instead of asking whether the Inline entity
	// exists.
	joined bool
}

// arg adds a parameter and returns its name.
func (b *builder) arg(v any) string {
	b.args = append(b.args, v)
	return fmt.Sprintf("$%d", len(b.args))
}

// condition returns the SQL of a filter for entity e at a level.
func (b *builder) condition(e *Entity, level int, f *Filter) string {
	var all []string
	for i := range f.And {
		all = append(all, b.condition(e, level, &f.And[i]))
	}
	if f.Or != nil {
		either := []string{"false"}
		for i := range f.Or {
			either = append(either, b.condition(e, level, &f.Or[i]))
		}
		all = append(all, "("+strings.Join(either, " or ")+")")
	}
	if f.ChangedFrom != nil {
		all = append(all, at(e.Changed, level)+" >= "+b.changedFrom(e, *f.ChangedFrom))
	}
	switch {
	case f.Child != nil:
		all = append(all, b.child(e, level, f.Field, f.Child))
	case f.Field != nil:
		all = append(all, b.compare(e, level, f))
	}
	if len(all) == 0 {
		return "true"
	}
	return "(" + strings.Join(all, " and ") + ")"
}

// changedFrom returns the SQL of what the Changed of rows is at least that changed at a block or later. The sums of an
// hour or day may change until it is over. One that ended between the block before and this one changed at this one:
// its readers saw it for the first time then.
func (b *builder) changedFrom(e *Entity, block int64) string {
	if !e.Aggregation {
		return b.arg(block) + "::bigint"
	}
	return "coalesce((select extract(epoch from b.time)::bigint / 3600 / @hours@ * @hours@ from blocks b" +
		" where b.chain_id = $1 and b.number < " + b.arg(block) +
		"::bigint and b.time is not null order by b.number desc limit 1), 0)"
}

// child returns the SQL of whether an entity that a field refers to meets a condition.
func (b *builder) child(e *Entity, level int, f *Field, where *Filter) string {
	to := b.schema.Entity(f.To)
	if f.Inline {
		return "(" + at(f.Key[len(f.Key)-1], level) + " is not null and " + b.condition(to, level, where) + ")"
	}
	return "exists (select from " + at(to.From, level+1) + " where " + at(to.Where, level+1) +
		b.refers(e, level, f, level+1) +
		" and " + b.condition(to, level+1, where) + ")"
}

// refers returns the SQL of the condition, after others, that a row of the entity that field f of e refers to is the
// one, or among those, of a row of e.
func (b *builder) refers(e *Entity, level int, f *Field, child int) string {
	to := b.schema.Entity(f.To)
	ours, theirs := f.Key, to.Key.columns()
	if f.Many() {
		if f.Back == "" {
			return ""
		}
		ours, theirs = e.Key.columns(), to.Field(f.Back).Key
	}
	sql := ""
	for i := range ours {
		sql += " and " + at(theirs[i], child) + " = " + at(ours[i], level)
	}
	return sql
}

// compare returns the SQL of a comparison of a field with values.
func (b *builder) compare(e *Entity, level int, f *Filter) string {
	switch {
	case f.Field.Key != nil:
		return b.compareKey(e, level, f)
	case f.Field.List:
		return b.compareList(level, f)
	}
	x := "(" + at(f.Field.SQL, level) + ")"
	switch {
	case f.Field.Type == Bytes && (f.Op == Contains || f.Op == NotContains):
		return negated(f.Op, "position("+b.arg(f.Values[0])+"::bytea in "+x+") > 0")
	case partial(f.Op) && f.Field.Raw:
		return b.comparePart(f.Op, latin1(x), latin1Text(f.Values[0].(string)))
	case partial(f.Op):
		return b.comparePart(f.Op, x, f.Values[0].(string))
	}
	sql := b.compareWhole(f.Field.kind(), x, f.Op, f.Field.parameters(f.Values))
	if hours := b.hours(level, f); hours != "" {
		return "(" + sql + hours + ")"
	}
	if t, bounds := f.since(); bounds {
		if first, known := b.firstBlocks[t]; known {
			return "(" + sql + " and " + at(f.Field.Block, level) + " >= " + b.arg(first) + "::bigint)"
		}
	}
	return sql
}

// kind is how Postgres compares the values of a field.
type kind struct {
	cast    string // type of a parameter
	array   string // type of a list of parameters
	collate string
}

// kind returns how Postgres compares the values of a scalar field.
func (f *Field) kind() kind {
	switch {
	case f.Raw, f.Type == Bytes:
		return kind{"::bytea", "::bytea[]", ""}
	case f.Type == BigInt, f.Type == BigDecimal, f.Type == Int, f.Type == Int8, f.Type == Timestamp:
		return kind{"::text::numeric", "::text[]::numeric[]", ""}
	case f.Type == Boolean:
		return kind{"::boolean", "::boolean[]", ""}
	}
	return texts()
}

// collateC compares texts by their bytes, as graph-node does.
const collateC = ` collate "C"`

// texts returns how texts are compared.
func texts() kind { return kind{"::text", "::text[]", collateC} }

// parameters returns values in the form that Postgres gets.
func (f *Field) parameters(values []any) []any {
	if !f.Raw {
		return values
	}
	out := make([]any, len(values))
	for i, v := range values {
		if s, isText := v.(string); isText {
			out[i] = []byte(s)
		}
	}
	return out
}

// compareWhole returns the SQL of a comparison of x with whole values.
func (b *builder) compareWhole(k kind, x string, op Op, values []any) string {
	x += k.collate
	switch op {
	case In, NotIn:
		return b.compareAny(k, x, op, values)
	case Equal, Not:
		if values[0] == nil {
			return x + map[Op]string{Equal: " is null", Not: " is not null"}[op]
		}
	}
	signs := map[Op]string{Equal: "=", Not: "<>", Greater: ">", Less: "<", GreaterEqual: ">=", LessEqual: "<="}
	return x + " " + signs[op] + " " + b.arg(values[0]) + k.cast
}

// compareAny returns the SQL of whether x is, or is not, among values. Null among them stands for an absent value.
func (b *builder) compareAny(k kind, x string, op Op, values []any) string {
	present := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil })
	null := len(present) < len(values)
	sql := "false"
	if len(present) > 0 {
		sql = x + " = any(" + b.arg(typed(present)) + k.array + ")"
	}
	switch {
	case op == In && null:
		return "(" + sql + " or " + x + " is null)"
	case op == In:
		return sql
	case null:
		return "(not " + sql + " and " + x + " is not null)"
	}
	return "not " + sql
}

// typed returns values of one type as a slice of that type, which the driver encodes as an array.
func typed(values []any) any {
	switch values[0].(type) {
	case []byte:
		return slice[[]byte](values)
	case bool:
		return slice[bool](values)
	}
	return slice[string](values)
}

// slice converts values that have one type.
func slice[T any](values []any) []T {
	out := make([]T, len(values))
	for i, v := range values {
		out[i], _ = v.(T)
	}
	return out
}

// partial reports whether an operator compares with a part of a text.
func partial(op Op) bool {
	return strings.Contains(string(op), "contains") || strings.Contains(string(op), "_with")
}

// negated returns a condition, or its opposite for an operator that begins with not.
func negated(op Op, sql string) string {
	if strings.HasPrefix(string(op), "not_") {
		return "not (" + sql + ")"
	}
	return sql
}

// comparePart returns the SQL of a comparison of text x with a part of it. The part is no pattern: % and _ stand for
// themselves.
func (b *builder) comparePart(op Op, x, part string) string {
	p := b.arg(part) + "::text"
	positive := strings.TrimPrefix(string(op), "not_")
	if plain, nocase := strings.CutSuffix(positive, "_nocase"); nocase {
		positive, x, p = plain, "lower("+x+")", "lower("+p+")"
	}
	switch Op(positive) {
	case StartsWith:
		return negated(op, "starts_with("+x+", "+p+")")
	case EndsWith:
		return negated(op, "right("+x+", length("+p+")) = "+p)
	}
	return negated(op, "strpos("+x+", "+p+") > 0")
}

// latin1 returns the SQL of bytes as a text with one character for each byte, null for bytes with a zero: texts of the
// chain may be no UTF-8, and Postgres has no text with a zero.
func latin1(x string) string {
	return `(case when position('\x00'::bytea in ` + x + `) = 0 then convert_from(` + x + `, 'LATIN1') end) collate "C"`
}

// latin1Text returns a text as latin1 does.
func latin1Text(s string) string {
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}

// compareList returns the SQL of a comparison of a list with the values of another one.
func (b *builder) compareList(level int, f *Filter) string {
	x := "(" + at(f.Field.SQL, level) + ")"
	values := []string{}
	for _, v := range f.Values {
		values = append(values, f.Field.element(v))
	}
	elements := "select from jsonb_array_elements_text(" + x + ") as e(v)"
	switch f.Op {
	case Equal, Not, Contains:
		whole, _ := json.Marshal(values) // a list of texts
		sign := map[Op]string{Equal: "=", Not: "<>", Contains: "@>"}[f.Op]
		return x + " " + sign + " " + b.arg(string(whole)) + "::text::jsonb"
	case NotContains:
		return "not exists (" + elements + " where e.v = any(" + b.arg(values) + "::text[]))"
	}
	return negated(f.Op, "exists ("+elements+", unnest("+b.arg(values)+
		"::text[]) as w(v) where lower(e.v) = lower(w.v))")
}

// element returns a value as the elements of a list are stored.
func (f *Field) element(v any) string {
	switch v := v.(type) {
	case []byte:
		return hexutil.Encode(v)
	case string:
		if f.Raw {
			return hex.EncodeToString([]byte(v))
		}
		return v
	}
	return ""
}
