package api_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"repute/api"
)

// gqlType is a type of the schema as introspection tells it.
type gqlType struct {
	Kind, Name  string
	OfType      *gqlType
	Fields      []gqlField
	InputFields []gqlArg
}

type gqlField struct {
	Name string
	Args []gqlArg
	Type gqlType
}

type gqlArg struct {
	Name         string
	Type         gqlType
	DefaultValue *string
}

// named is the type without lists and non-null.
func (t gqlType) named() string {
	for t.OfType != nil {
		t = *t.OfType
	}
	return t.Name
}

// String is the type as variables are declared.
func (t gqlType) String() string {
	switch t.Kind {
	case "NON_NULL":
		return t.OfType.String() + "!"
	case "LIST":
		return "[" + t.OfType.String() + "]"
	}
	return t.Name
}

// schemaTypes reads the schema by introspection.
func schemaTypes(t *testing.T, s *httptest.Server) map[string]gqlType {
	t.Helper()
	ref := "kind name ofType { kind name ofType { kind name ofType { kind name } } }"
	arg := "name defaultValue type { " + ref + " }"
	a := data[struct {
		Schema struct{ Types []gqlType } `json:"__schema"`
	}](t, ask(t, s, "{ __schema { types { kind name inputFields { "+arg+" } fields { name args { "+arg+" } type { "+ref+
		" } } } } }", nil))
	types := map[string]gqlType{}
	for _, typ := range a.Schema.Types {
		if !strings.HasPrefix(typ.Name, "__") {
			types[typ.Name] = typ
		}
	}
	return types
}

// needed are values of the arguments that must be given.
func needed(f gqlField) string {
	var out []string
	for _, a := range f.Args {
		if a.Type.Kind == "NON_NULL" {
			value := `"8453:7"`
			switch {
			case a.Type.OfType.Kind == "LIST":
				value = `["8453:7", "8453:3"]`
			case a.Type.named() == "Long":
				value = "8453"
			case a.Type.named() == "Address":
				value = fmt.Sprintf("%q", addr(50).Hex())
			}
			out = append(out, a.Name+": "+value)
		}
	}
	return strings.Join(out, ", ")
}

// call is a field with arguments and a selection.
func call(f gqlField, arguments, selection string) string {
	if arguments = strings.Trim(arguments, ", "); arguments != "" {
		arguments = "(" + arguments + ")"
	}
	return f.Name + arguments + selection
}

// selects is everything of a type to a depth that is there without optional arguments.
func selects(types map[string]gqlType, of gqlType, depth int) string {
	typ := types[of.named()]
	if typ.Kind != "OBJECT" {
		return ""
	}
	out := []string{"__typename"}
	for _, f := range typ.Fields {
		if len(f.Args) > 0 || f.Name == "lagSeconds" { // the clock runs on
			continue
		}
		if inner := types[f.Type.named()]; inner.Kind != "OBJECT" || depth > 1 {
			out = append(out, f.Name+selects(types, f.Type, depth-1))
		}
	}
	return " { " + strings.Join(out, " ") + " }"
}

// place is a field with arguments and how to ask for it: a query with %s for the field.
type place struct {
	field gqlField
	query string
	path  string
}

// places walks the schema from a root to every field with arguments, no type twice on a way.
func places(types map[string]gqlType, of, query string, way []string) (out []place) {
	way = append(slices.Clip(way), of)
	for _, f := range types[of].Fields {
		path := strings.Join(append(slices.Clip(way[1:]), f.Name), ".")
		if len(f.Args) > 0 {
			out = append(out, place{f, query, path})
		}
		if next := f.Type.named(); types[next].Kind == "OBJECT" && !slices.Contains(way, next) {
			out = append(out, places(types, next, fmt.Sprintf(query, call(f, needed(f), " { %s }")), way)...)
		}
	}
	return out
}

// TestNullArguments: an optional argument that is null, or whose variable is absent or null,
// is as one that is not there, wherever a field takes arguments.
func TestNullArguments(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{QueryCost: 1 << 30}, unlimited())
	types := schemaTypes(t, s)
	all := append(places(types, "Query", "{ %s }", nil), places(types, "Mutation", "mutation { %s }", nil)...)
	tried := 0
	for _, p := range all {
		for _, arg := range p.field.Args {
			if arg.Type.Kind == "NON_NULL" {
				continue
			}
			tried++
			tryNull(t, s, types, p, arg)
		}
	}
	t.Logf("%d optional arguments of %d fields", tried, len(all))
	if tried < 60 {
		t.Errorf("only %d optional arguments were tried", tried)
	}
}

// tryNull compares the answers to a field with an argument that is null, and without it. A field that is refused
// without it must be refused in the same words.
func tryNull(t *testing.T, s *httptest.Server, types map[string]gqlType, p place, arg gqlArg) {
	t.Helper()
	selection := selects(types, p.field.Type, 2)
	plain := fmt.Sprintf(p.query, call(p.field, needed(p.field), selection))
	want := ask(t, s, plain, nil)
	refused := func(a answer) string {
		if len(a.Errors) == 0 {
			return ""
		}
		return a.Errors[0].Message
	}
	maybe := []string{"tasks", "runs", "treasury", "checkFile"}
	if refused(want) != "" && !slices.Contains(maybe, p.path) && !strings.HasSuffix(p.path, "Agent.runs") {
		t.Errorf("%s: %v", p.path, want.Errors[0])
		return
	}
	asked := func(name, query string, variables map[string]any) {
		t.Helper()
		got := ask(t, s, query, variables)
		if refused(got) != refused(want) {
			t.Errorf("%s(%s): %s: %q instead of %q", p.path, arg.Name, name, refused(got), refused(want))
		} else if string(got.Data) != string(want.Data) {
			t.Errorf("%s(%s): %s: another answer than without the argument", p.path, arg.Name, name)
		}
	}
	given := func(value string) string {
		return fmt.Sprintf(p.query, call(p.field, needed(p.field)+", "+arg.Name+": "+value, selection))
	}
	typed := "query($v: " + arg.Type.String() + ") " + given("$v")
	asked("absent variable", typed, nil)
	asked("null variable", typed, map[string]any{"v": nil})
	asked("literal null", given("null"), nil)
	for _, f := range types[arg.Type.named()].InputFields {
		if f.Type.Kind == "NON_NULL" {
			continue
		}
		inner := "query($v: " + f.Type.String() + ") " + given("{"+f.Name+": $v}")
		asked(f.Name+" by absent variable", inner, nil)
		asked(f.Name+" by null variable", inner, map[string]any{"v": nil})
		asked(f.Name+" null", typed, map[string]any{"v": map[string]any{f.Name: nil}})
	}
}
