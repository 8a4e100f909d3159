package subgraph_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawer draws documents of the schema.
type drawer struct {
	t     *rapid.T
	types map[string]typeInfo
}

// of returns one of a list.
func of[V any](d drawer, list ...V) V { return rapid.SampledFrom(list).Draw(d.t, "one") }

// document returns a query of one to three lists or entities.
func (d drawer) document() string {
	var b strings.Builder
	for i := range rapid.IntRange(1, 3).Draw(d.t, "roots") {
		root := of(d, slices.DeleteFunc(slices.Clone(d.types["Query"].Fields),
			func(f member) bool { return f.Name == "_meta" })...)
		fmt.Fprintf(&b, "a%d: %s%s { %s } ", i, root.Name, d.arguments(root), d.selection(base(root.Type), 3))
	}
	return "{ " + b.String() + "}"
}

// base returns the name of a type without lists and exclamation marks.
func base(t *typeName) string { return strings.Trim(t.String(), "[]!") }

// selection returns some fields of a type.
func (d drawer) selection(entity string, depth int) string {
	out := []string{"id"}
	for range rapid.IntRange(0, 4).Draw(d.t, "fields") {
		f := of(d, d.types[entity].Fields...)
		key := fmt.Sprintf("b%d: %s", len(out), f.Name)
		switch {
		case d.types[base(f.Type)].Kind != "OBJECT":
			out = append(out, key)
		case depth > 0:
			out = append(out, fmt.Sprintf("%s%s { %s }", key, d.arguments(f), d.selection(base(f.Type), depth-1)))
		}
	}
	return strings.Join(out, " ")
}

// arguments returns arguments of a field, those that it must have among them.
func (d drawer) arguments(f member) string {
	var out []string
	for _, a := range f.Args {
		if strings.HasSuffix(a.Type.String(), "!") || rapid.IntRange(0, 2).Draw(d.t, "given") > 0 {
			out = append(out, a.Name+": "+d.argument(a))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// argument returns a value of an argument.
func (d drawer) argument(a member) string {
	switch a.Name {
	case "first":
		return of(d, "1", "2", "10", "1000")
	case "skip":
		return of(d, "0", "1", "7", "4294967295")
	case "block":
		return of(d, "null", "{number: 8}", "{number_gte: 1}")
	case "subgraphError":
		return of(d, "allow", "deny")
	}
	return d.value(a.Type.String(), 3)
}

// value returns a value of a type, at times one that the type does not have.
func (d drawer) value(of string, depth int) string {
	of = strings.TrimSuffix(of, "!")
	if inner, isList := strings.CutPrefix(of, "["); isList {
		var out []string
		for range rapid.IntRange(0, 3).Draw(d.t, "n") {
			out = append(out, d.value(strings.TrimSuffix(inner, "]"), depth-1))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	switch kind := d.types[of]; {
	case kind.Kind == "ENUM":
		return rapid.SampledFrom(kind.EnumValues).Draw(d.t, "enum").Name
	case of == "BlockChangedFilter":
		return "{number_gte: " + d.scalar("Int") + "}"
	case kind.Kind == "INPUT_OBJECT":
		return d.filter(kind, depth)
	}
	return d.scalar(of)
}

// filter returns a filter.
func (d drawer) filter(kind typeInfo, depth int) string {
	var out []string
	if depth > 0 {
		for range rapid.IntRange(0, 2).Draw(d.t, "members") {
			f := rapid.SampledFrom(kind.InputFields).Draw(d.t, "member")
			out = append(out, f.Name+": "+d.value(f.Type.String(), depth-1))
		}
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// scalar returns a value of a scalar.
func (d drawer) scalar(kind string) string {
	numbers := []string{"0", "-1", "1", `"8453"`, "1750000010", "9223372036854775808", `"+5"`,
		"-" + strings.Repeat("9", 190), "null", `""`}
	switch kind {
	case "BigDecimal":
		numbers = append(numbers, "99.5", "-1e300", `"1e-300"`, `".5"`)
	case "Boolean":
		return of(d, "true", "false", "null", "1")
	case "Bytes":
		return of(d, `"0x"`, `""`, `"0xA001"`, `"0x000000000000000000000000000000000000a001"`, `"zz"`, "null", "5")
	case "String", "ID":
		return of(d, `""`, `"8453"`, `"8453:"`, `"8453:1"`, `"8453:10"`, `"8453:01"`, `"8453:1:"`, `"8453:1:0x"`, `":"`,
			`"84530:1"`, `"9"`,
			`"8453:1:0x000000000000000000000000000000000000a0c9:1"`, `"8453:`+strings.Repeat("9", 100)+`"`,
			`"8453:1:model"`,
			`"0xaa00000000000000000000000000000000000000000000000000000000000000"`, `"é\\%_'\"$1{a}@all@"`, `"\u0000"`,
			`"\ud800"`,
			"null", "5", "x", `"`+strings.Repeat("a", 5000)+`"`)
	}
	return of(d, numbers...)
}

// TestAnyQuery: whatever a query of the schema asks, the database understands its statements: the answer has data, or
// says what is wrong with the query.
func TestAnyQuery(t *testing.T) {
	t.Parallel()
	s := serve(t, story(t).db)
	types := typesOf(t, s)
	rapid.Check(t, func(t *rapid.T) {
		query := drawer{t, types}.document()
		var answer struct {
			Data   map[string]any
			Errors []struct{ Message string }
		}
		if err := json.Unmarshal(s.ask(query, nil), &answer); err != nil ||
			(answer.Data == nil) == (len(answer.Errors) == 0) {
			t.Fatalf("%v %+v: %s", err, answer, query)
		}
		for _, e := range answer.Errors {
			if e.Message == "" || strings.Contains(e.Message, "timed out") {
				t.Fatalf("%q: %s", e.Message, query)
			}
		}
	})
}

// FuzzAnswer: no request makes the server fail, and each answer is JSON.
func FuzzAnswer(f *testing.F) {
	s := serve(f, story(f).db)
	for _, one := range shapes() {
		body, err := json.Marshal(map[string]any{"query": one.query, "variables": one.variables})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(body))
	}
	f.Add(`{"query":"{ agents(orderBy: lastActivity, skip: 1, where: {id_gt: \"8453:1\", or: [{metadata_: {key: \"model\"}}]}) { id } }"}`)
	f.Fuzz(func(t *testing.T, body string) {
		one := &server{t, s.Server}
		status, answer := one.post(fmt.Sprintf("/subgraphs/%d", chainID), body)
		if status != http.StatusOK && status != http.StatusBadRequest || !json.Valid(answer) {
			t.Fatalf("%d %.500s", status, answer)
		}
	})
}
