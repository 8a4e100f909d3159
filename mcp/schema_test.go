package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/internal/httpapi"
)

// order is what a tool takes in these tests.
type order struct {
	ID     Text           `json:"id" doc:"id of an agent"`
	Count  int            `json:"count,omitempty" minimum:"1" maximum:"9" doc:"how many, 1 to 9"`
	Kind   string         `json:"kind,omitempty" enum:"a,b"`
	Exact  json.Number    `json:"exact,omitempty" doc:"a number"`
	Lines  []orderLine    `json:"lines,omitempty" maxItems:"2" doc:"what is ordered"`
	Labels map[string]int `json:"labels,omitempty"`
}

type orderLine struct {
	Name string `json:"name" minLength:"1"`
}

// TestMistakesOfCallers: whatever is wrong with arguments, the error is repute.ErrInvalid, names the field, and says
// what the field is for.
func TestMistakesOfCallers(t *testing.T) {
	t.Parallel()
	s, err := shapeOf(reflect.TypeFor[order](), false)
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		`{}`:                            "id: is missing (id of an agent)",
		`{"idd":"1"}`:                   "idd: is no field of this tool (known are count, exact, id, kind, labels, lines)",
		`{"id":1.5}`:                    "id: must be text or a whole number (id of an agent)",
		`{"id":null}`:                   "id: must be text or a whole number (id of an agent)",
		`{"id":"1","count":0}`:          "count: must be number >= 1 (how many, 1 to 9)",
		`{"id":"1","count":"2"}`:        "count: must be integer (how many, 1 to 9)",
		`{"id":"1","kind":"c"}`:         `kind: must be one of "a, b" (see the tool's inputSchema)`,
		`{"id":"1","lines":[{}]}`:       "lines[0].name: is missing (see the tool's inputSchema)",
		`{"id":"1","lines":[{"n":1}]}`:  "lines[0].n: is no field of this tool",
		`{"id":"1","labels":{"x":"y"}}`: "labels.x: must be integer (see the tool's inputSchema)",
		`[]`:                            "arguments: must be object (see the tool's inputSchema)",
		`null`:                          "arguments: must be object (see the tool's inputSchema)",
		`{`:                             "arguments: ",
		`{"id":"\u0000"}`:               "arguments",
	} {
		var into order
		err := s.read(json.RawMessage(raw), &into)
		if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	for raw, want := range map[string]order{`{"id":22}`: {ID: "22"}, `{"ID":"a"}`: {ID: "a"},
		`{"id":"8453:22","count":9}`:            {ID: "8453:22", Count: 9},
		`{"id":-1,"exact":1.50}`:                {ID: "-1", Exact: "1.50"},
		`{"id":"","lines":[],"labels":{"x":1}}`: {Lines: []orderLine{}, Labels: map[string]int{"x": 1}}} {
		var into order
		if err := s.read(json.RawMessage(raw), &into); err != nil || !reflect.DeepEqual(into, want) {
			t.Errorf("%s: %+v, %v", raw, into, err)
		}
	}
	long := `{"id":"1","` + strings.Repeat("x", 5_000) + `":1}`
	if err := s.read(json.RawMessage(long), &order{}); err == nil || len(err.Error()) > 300 {
		t.Errorf("a long name comes back whole: %d bytes", len(fmt.Sprint(err)))
	}
}

// FuzzRead: whatever a caller sends is read or refused by an error that names a field.
func FuzzRead(f *testing.F) {
	s, err := shapeOf(reflect.TypeFor[order](), false)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{"id":"1"}`, `{"id":1e400}`, `{"id":[[[]]]}`, `{"id":1,"lines":[{"name":""},null]}`, ``,
		"{\"id\":\"\xff\"}", `{"id":1,"id":2}`, `{"id":9007199254740993,"exact":-0.0e-99}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var into order
		err := s.read(raw, &into)
		var input *repute.InputError
		if err != nil && (!errors.As(err, &input) || input.Field == "" || input.Hint == "") {
			t.Fatalf("%v", err)
		}
	})
}

// TestText: an id is text or a whole number of any size, whose digits stay.
func TestText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`-?(0|[1-9][0-9]{0,90})`).Draw(t, "digits")
		for _, raw := range []string{digits, `"` + digits + `"`} {
			var got Text
			if err := json.Unmarshal([]byte(raw), &got); err != nil || string(got) != digits {
				t.Fatalf("%s is %q, %v", raw, got, err)
			}
		}
	})
	for _, raw := range []string{"1.0", "1e3", "true", "{}", "[1]", "-"} {
		var got Text
		if err := got.UnmarshalJSON([]byte(raw)); (err == nil) != (raw == "-") {
			t.Errorf("%s is %q, %v", raw, got, err)
		}
	}
}

// TestPlainSchemas: the list of tools has no references, no widths of Go's numbers, and one list of types instead of
// alternatives.
func TestPlainSchemas(t *testing.T) {
	t.Parallel()
	s, err := shapeOf(reflect.TypeFor[order](), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{"$ref", "$defs", "int64", "anyOf"} {
		if strings.Contains(string(s.raw), none) {
			t.Errorf("the schema has %s: %s", none, s.raw)
		}
	}
	var read struct {
		Required   []string
		Properties map[string]struct {
			Type any
			Enum []string
		}
		AdditionalProperties any
	}
	if err := json.Unmarshal(s.raw, &read); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(read.Required, []string{"id"}) || read.AdditionalProperties != false {
		t.Errorf("required %v, others %v", read.Required, read.AdditionalProperties)
	}
	if kinds := fmt.Sprint(read.Properties["id"].Type); kinds != "[string integer]" {
		t.Errorf("an id is of the types %s", kinds)
	}
	if kind := read.Properties["kind"]; kind.Type != nil || !slices.Equal(kind.Enum, []string{"a", "b"}) {
		t.Errorf("an enum: %+v", kind)
	}
	if kind := read.Properties["exact"].Type; kind != "number" {
		t.Errorf("an exact number is a %v", kind)
	}
	if _, err := shapeOf(reflect.TypeFor[[]order](), false); err == nil || !strings.Contains(err.Error(), "is no object") {
		t.Errorf("a list is a tool's input: %v", err)
	}
}

// drawSchema draws a schema of objects, lists, scalars and enums, with members of all objects required.
func drawSchema(t *rapid.T, depth int) map[string]any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind = min(kind, 2)
	}
	switch kind {
	case 0:
		return map[string]any{"type": "string", "description": "a text"}
	case 1:
		return map[string]any{"type": []any{"integer", "null"}}
	case 2:
		return map[string]any{"type": "string", "enum": []any{"x", "y"}}
	case 3:
		return map[string]any{"type": "array", "items": drawSchema(t, depth-1)}
	}
	return drawObject(t, depth)
}

// drawObject draws the schema of an object.
func drawObject(t *rapid.T, depth int) map[string]any {
	properties, required := map[string]any{}, []any{}
	for i := range rapid.IntRange(0, 6).Draw(t, "members") {
		name := fmt.Sprintf("member_%d_%d", depth, i)
		properties[name], required = drawSchema(t, depth-1), append(required, name)
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// valueOf returns a value that fits a schema of drawSchema.
func valueOf(t *rapid.T, s map[string]any) any {
	if _, is := s["enum"]; is {
		return rapid.SampledFrom([]any{"x", "y"}).Draw(t, "enum")
	}
	switch s["type"] {
	case "string":
		return "text"
	case "array":
		out := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "length") {
			out = append(out, valueOf(t, s["items"].(map[string]any)))
		}
		return out
	case "object":
		out := map[string]any{}
		for name, member := range s["properties"].(map[string]any) {
			out[name] = valueOf(t, member.(map[string]any))
		}
		return out
	}
	return rapid.SampledFrom([]any{nil, 7.0}).Draw(t, "number or null")
}

// fits reports whether a value fits an outline, as JSON Schema defines it for the keywords that outlines have.
func fits(v any, s map[string]any) bool {
	if enum, is := s["enum"].([]any); is && !slices.Contains(enum, v) {
		return false
	}
	kind := "null"
	switch v := v.(type) {
	case string:
		kind = "string"
	case float64:
		kind = "integer"
	case []any:
		kind = "array"
		if items, is := s["items"].(map[string]any); is &&
			slices.ContainsFunc(v, func(e any) bool { return !fits(e, items) }) {
			return false
		}
	case map[string]any:
		kind = "object"
		for name, member := range v {
			for _, below := range membersOf(s, name) {
				if !fits(member, below) {
					return false
				}
			}
		}
	}
	switch kinds := s["type"].(type) {
	case string:
		return kinds == kind
	case []any:
		return slices.Contains(kinds, any(kind))
	}
	return true
}

// membersOf returns the schemas of a member, by its name and by patterns.
func membersOf(s map[string]any, name string) (out []map[string]any) {
	if properties, is := s["properties"].(map[string]any); is && properties[name] != nil {
		out = append(out, properties[name].(map[string]any))
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for pattern, below := range patterns {
		if slices.Contains(strings.Split(strings.Trim(pattern, "^()$"), "|"), name) {
			out = append(out, below.(map[string]any))
		}
	}
	return out
}

// TestOutlines: what fits a schema fits its outline, which lists every member of the answer itself and never takes more
// room than there is for what is below them.
func TestOutlines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole := drawObject(t, 3)
		before := string(encoded(whole))
		short := outline(whole)
		if string(encoded(whole)) != before {
			t.Fatal("the schema was changed")
		}
		for name := range whole["properties"].(map[string]any) {
			if len(membersOf(short, name)) != 1 {
				t.Fatalf("%s has no member %s, or two", encoded(short), name)
			}
		}
		if v := valueOf(t, whole); !fits(v, short) {
			t.Fatalf("%s fits %s and not %s", encoded(v), before, encoded(short))
		}
		if size := len(encoded(short)); size > maxOutline && size > len(encoded(outline(shallow(whole)))) {
			t.Fatalf("%d bytes: %s", size, encoded(short))
		}
		for _, none := range []string{"description", "required", "additionalProperties"} {
			if strings.Contains(string(encoded(short)), none) {
				t.Fatalf("%s has %s", encoded(short), none)
			}
		}
	})
}

// shallow returns a schema whose objects below the first have no members.
func shallow(s map[string]any) map[string]any {
	var cut func(s map[string]any) map[string]any
	cut = func(s map[string]any) map[string]any {
		out := map[string]any{}
		for key, v := range s {
			if key == "items" {
				v = cut(v.(map[string]any))
			}
			if key != "properties" {
				out[key] = v
			}
		}
		return out
	}
	members := map[string]any{}
	for name, member := range s["properties"].(map[string]any) {
		members[name] = cut(member.(map[string]any))
	}
	return map[string]any{"type": "object", "properties": members}
}

// TestEffects: clients ask a person before a tool that may destroy, so that what a tool leaves out counts as harmful in
// the protocol.
func TestEffects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		effect Effect
		want   string
	}{{Effect{}, `{"idempotentHint":true,"openWorldHint":false,"readOnlyHint":true}`},
		{Effect{Changes: true},
			`{"destructiveHint":false,"idempotentHint":false,"openWorldHint":false,"readOnlyHint":false}`},
		{Effect{Changes: true, Repeats: true},
			`{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"readOnlyHint":false}`},
		{Effect{Changes: true, Destroy: true, World: true}, `{"idempotentHint":false,"readOnlyHint":false}`}} {
		var got map[string]any
		raw, err := json.Marshal(c.effect.annotations())
		if err == nil {
			err = json.Unmarshal(raw, &got)
		}
		if err != nil || string(encoded(got)) != c.want {
			t.Errorf("%+v: %s, %v", c.effect, raw, err)
		}
	}
}

// TestErrorsForModels: an error is one sentence with its code, and the fix where there is one.
func TestErrorsForModels(t *testing.T) {
	t.Parallel()
	for want, body := range map[string]*httpapi.ErrorBody{
		"not_found: no such agent":                  {Code: "not_found", Detail: "no such agent."},
		"invalid: id: is missing. Fix: give the id": {Code: "invalid", Detail: "id: is missing", Hint: "give the id"},
	} {
		if got := text(body); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
