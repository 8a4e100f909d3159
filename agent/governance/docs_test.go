package governance_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"repute/agent/governance"
)

const page = "../../docs/reference/agent-policy.md"

// rows lists the first column of the table whose head begins with a word, one entry for each name.
func rows(t *testing.T, text, head string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n| "+head+" |")
	if !ok {
		t.Fatalf("%s has no table of %s", page, head)
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	var out []string
	for _, line := range strings.Split(table, "\n")[2:] {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
			out = append(out, name[1])
		}
	}
	slices.Sort(out)
	return out
}

// members lists the paths of a type's JSON members.
func members(of reflect.Type, prefix string) (out []string) {
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type.Kind() == reflect.Struct {
			out = append(out, members(f.Type, prefix+name+".")...)
			continue
		}
		out = append(out, prefix+name)
	}
	slices.Sort(out)
	return out
}

// codesInSource lists the constants of type Code.
func codesInSource(t *testing.T) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "decide.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Code" {
			code, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			out = append(out, code)
		}
		return true
	})
	slices.Sort(out)
	return out
}

// The reference page lists the members and codes that the code has, its example is a policy, and its
// custom rules can name what the page says.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	if got, want := rows(t, text, "member"), members(reflect.TypeFor[governance.File](), ""); !slices.Equal(got, want) {
		t.Errorf("the page has the members\n%v, the code\n%v", got, want)
	}
	if got, want := rows(t, text, "code"), codesInSource(t); !slices.Equal(got, want) {
		t.Errorf("the page has the codes\n%v, the code\n%v", got, want)
	}
	_, example, _ := strings.Cut(text, "```jsonc\n")
	example, _, _ = strings.Cut(example, "```")
	p := parse(t, example)
	if !strings.Contains(text, "`"+p.Hash().Hex()+"`") {
		t.Errorf("the hash of the example is %s", p.Hash())
	}
	_, err = governance.Parse([]byte(strings.Replace(example, "refundPolicy", "refund", 1)))
	if first, _, _ := strings.Cut(err.Error(), " ("); !strings.Contains(text, "`"+first+"`") {
		t.Errorf("the error of an unknown member is %v", err)
	}
	types := map[string]string{"string": ` == ""`, "double": ` < 1.0`, "bool": ` == true`, "int": ` == 1`}
	for _, name := range rows(t, text, "name") {
		fits := 0
		for compare := range maps.Values(types) {
			rule := `"custom":[{"id":"a","when":` + strconv.Quote(name+compare) + `,"effect":"deny","reason":"r"}]`
			if _, err := governance.Parse([]byte(`{"version":"1.0","agentId":1,"rules":{` + rule + `}}`)); err == nil {
				fits++
			}
		}
		if fits != 1 {
			t.Errorf("rules cannot name %s", name)
		}
	}
}
