package agentjson

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"repute/manifest"
)

var update = flag.Bool("update", false, "write the table of codes into the documentation")

// declared are the constants of codes.go: name → code.
func declared(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes[spec.Names[0].Name] = code
		}
		return true
	})
	return codes
}

// Every code is explained once, with a hint, and something gives it. Codes of other documents keep their meaning.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	seen, numbers := map[string]bool{}, map[string]bool{}
	for _, e := range explanations() {
		if seen[e.code] || numbers[e.code[1:]] || e.meaning == "" || e.hint == "" || e.code[1] != 'J' ||
			e.code[0] == 'E' && !e.strict {
			t.Errorf("%+v", e)
		}
		seen[e.code], numbers[e.code[1:]] = true, true
		if Hint(e.code) != e.hint || e.strict && Hint("E"+e.code[1:]) != e.hint ||
			!e.strict && Hint("E"+e.code[1:]) != "" {
			t.Errorf("hint of %s: %q", e.code, Hint(e.code))
		}
		number, err := strconv.Atoi(e.code[2:])
		if others := manifest.Hint("EA"+e.code[2:]) + manifest.Hint("WA"+e.code[2:]) +
			manifest.Hint("IA"+e.code[2:]); err != nil ||
			(number < 600) != (others != "") {
			t.Errorf("%s is a number of its own: %v", e.code, err)
		}
	}
	source := ""
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && name != "codes.go" && name != "explain.go" &&
			!strings.HasSuffix(name, "_test.go") {
			source += string(b)
		}
	}
	all := declared(t)
	for name, code := range all {
		if !seen[code] || !regexp.MustCompile(name+`\b`).MatchString(source) {
			t.Errorf("%s %s is not explained, or nothing gives it", name, code)
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d codes explained, %d declared", len(seen), len(all))
	}
	for _, unknown := range []string{"", "E", "WJ999", "WA510", "IJ603"} {
		if Hint(unknown) != "" {
			t.Errorf("a hint for %q", unknown)
		}
	}
}

// The table of codes in the documentation is the one the program uses.
func TestCodesAreDocumented(t *testing.T) {
	t.Parallel()
	const path = "../../docs/reference/agent-json.md"
	const begin, end = "<!-- codes: written by go test ./manifest/agentjson -update -->\n", "<!-- /codes -->"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of codes", path)
	}
	var want strings.Builder
	want.WriteString("| code | strict | what is wrong | what to write |\n|---|---|---|---|\n")
	for _, e := range explanations() {
		strict := ""
		if e.strict {
			strict = "error"
		}
		cell := strings.NewReplacer("|", `\|`, "<", "&lt;")
		fmt.Fprintf(&want, "| %s | %s | %s | %s |\n", e.code, strict, cell.Replace(e.meaning), cell.Replace(e.hint))
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want.String() {
		t.Errorf("%s is stale; run with -update", path)
	}
}
