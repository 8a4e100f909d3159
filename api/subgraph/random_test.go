package subgraph_test

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRandomQueries compares the pages of random filters and orders on random chains with those of the model.
func TestRandomQueries(t *testing.T) {
	t.Parallel()
	type world struct {
		*model
		*server
	}
	var worlds []world
	for seed := range int64(3) {
		l := newLedger(t)
		worlds = append(worlds, world{randomWorld(l, seed), serve(t, l.db)})
	}
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom(worlds).Draw(t, "world")
		entity := rapid.SampledFrom([]string{"Agent", "Feedback", "FeedbackResponse"}).Draw(t, "entity")
		filter := w.draw(t, entity, 3)
		names := slices.DeleteFunc(w.fields(entity),
			func(f string) bool { return w.refs[entity+"."+f] == "AgentRegistrationFile" })
		if entity == "Agent" {
			names = append(names, "registrationFile__name", "registrationFile__active")
		}
		by := rapid.SampledFrom(names).Draw(t, "by")
		desc := rapid.Bool().Draw(t, "desc")
		first, skip := rapid.IntRange(1, 40).Draw(t, "first"), rapid.IntRange(0, 20).Draw(t, "skip")
		direction := map[bool]string{true: "desc", false: "asc"}[desc]
		name := strings.ToLower(entity[:1]) + entity[1:] + "s"
		q := fmt.Sprintf("query($w: %s_filter) { list: %s(where: $w, first: %d, skip: %d, orderBy: %s, orderDirection: %s) { id } }",
			entity, name, first, skip, by, direction)
		var got []string
		type list struct{ List []struct{ ID string } }
		for _, e := range answered[list](w.t, w.ask(q, map[string]any{"w": filter.json()})).List {
			got = append(got, e.ID)
		}
		want := w.answer(entity, filter, by, desc, first, skip)
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s %v:\n%v\n%v", q, filter.json(), got, want)
		}
	})
}

// fields returns the scalar fields of an entity, and those that refer to one entity.
func (m *model) fields(entity string) (names []string) {
	for f := range m.rows[entity][0] {
		if _, isList := m.rows[entity][0][f].([]string); !isList {
			names = append(names, f)
		}
	}
	slices.Sort(names)
	return names
}

// draw returns a random filter.
func (m *model) draw(t *rapid.T, entity string, depth int) where {
	kinds := []string{"all", "compare", "compare", "compare"}
	if depth > 0 && entity != "AgentRegistrationFile" { // which refers to nothing
		kinds = append(kinds, "and", "or", "child")
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "and":
		return where{and: m.drawSome(t, entity, depth)}
	case "or":
		return where{or: m.drawSome(t, entity, depth)}
	case "child":
		var fields []string
		for f := range m.refs {
			if own, isOwn := strings.CutPrefix(f, entity+"."); isOwn {
				fields = append(fields, own)
			}
		}
		slices.Sort(fields)
		f := rapid.SampledFrom(fields).Draw(t, "child")
		child := m.draw(t, m.refs[entity+"."+f], depth-1)
		return where{field: f, child: &child}
	case "compare":
		return m.drawComparison(t, entity)
	}
	return where{}
}

// drawSome returns some random filters.
func (m *model) drawSome(t *rapid.T, entity string, depth int) []where {
	out := []where{}
	for range rapid.IntRange(1, 3).Draw(t, "n") {
		out = append(out, m.draw(t, entity, depth-1))
	}
	return out
}

// drawComparison returns a comparison of a field with values that it has in some row, or with others.
func (m *model) drawComparison(t *rapid.T, entity string) where {
	rows := m.rows[entity]
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(rows[0])), func(f string) bool {
		return m.refs[entity+"."+f] == "AgentRegistrationFile" || entity == "AgentRegistrationFile" && f == "id"
	})
	w := where{field: rapid.SampledFrom(names).Draw(t, "field"), hasValue: true}
	value := func() any { return rapid.SampledFrom(rows).Draw(t, "row")[w.field] }
	var sample any
	for i := 0; i < len(rows) && sample == nil; i++ {
		sample = rows[i][w.field]
	}
	if sample == nil {
		return w // a comparison with null
	}
	w.op = rapid.SampledFrom(opsOf(sample, w.field == "id")).Draw(t, "op")
	switch {
	case w.op == "in" || w.op == "not_in":
		list, literal := []any{}, []any{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			if v := value(); v != nil {
				list, literal = append(list, v), append(literal, asJSON(v))
			}
		}
		w.value, w.literal = list, literal
	case strings.Contains(w.op, "contains") || strings.Contains(w.op, "_with"):
		w.value = part(t, value(), sample)
		w.literal = asJSON(w.value)
	default:
		w.value = value()
		if w.value == nil && w.op != "" && w.op != "not" {
			w.value = sample
		}
		w.literal = asJSON(w.value)
	}
	return w
}

// opsOf returns the operators of a value's type.
func opsOf(sample any, id bool) []string {
	compared := []string{"", "not", "gt", "lt", "gte", "lte", "in", "not_in"}
	switch sample.(type) {
	case bool:
		return []string{"", "not", "in", "not_in"}
	case []byte:
		return append(compared, "contains", "not_contains")
	case []string:
		return []string{"", "not", "contains", "not_contains"}
	case string:
		if id {
			return compared
		}
		for _, op := range []string{"contains", "starts_with", "ends_with"} {
			compared = append(compared, op, "not_"+op, op+"_nocase", "not_"+op+"_nocase")
		}
	}
	return compared
}

// part returns a part of a value, in another case at times.
func part(t *rapid.T, v, sample any) any {
	if v == nil {
		v = sample
	}
	switch v := v.(type) {
	case []string:
		return v[:rapid.IntRange(0, len(v)).Draw(t, "to")]
	case []byte:
		from := rapid.IntRange(0, len(v)).Draw(t, "from")
		return v[from:rapid.IntRange(from, len(v)).Draw(t, "to")]
	}
	runes := []rune(v.(string))
	from := rapid.IntRange(0, len(runes)).Draw(t, "from")
	s := string(runes[from:rapid.IntRange(from, len(runes)).Draw(t, "to")])
	if rapid.Bool().Draw(t, "upper") {
		return upper(s)
	}
	return s
}

// upper returns a text with ASCII letters in upper case: those of other alphabets depend on the database.
func upper(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// asJSON returns a value of the model as variables have it.
func asJSON(v any) any {
	switch v := v.(type) {
	case *big.Rat:
		return strings.TrimRight(strings.TrimRight(v.FloatString(18), "0"), ".")
	case []byte:
		return fmt.Sprintf("0x%X", v)
	}
	return v
}
