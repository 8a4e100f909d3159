package manifest

import (
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
)

// declared are the constants of codes.go: name → code.
func declared(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Code") {
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

// Every code is explained once, with a hint, and something gives it.
func TestEveryCodeIsExplained(t *testing.T) {
	seen, numbers := map[string]bool{}, map[string]string{}
	for _, e := range explanations() {
		if seen[e.code] || e.meaning == "" || e.hint == "" || !strings.Contains(e.areas, e.code[1:2]) {
			t.Errorf("%+v", e)
		}
		if other, twice := numbers[e.code[2:]]; twice {
			t.Errorf("%s and %s share a number", e.code, other)
		}
		seen[e.code], numbers[e.code[2:]] = true, e.code
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
	for name, code := range declared(t) {
		if !seen[code] {
			t.Errorf("%s %s is not explained", name, code)
		}
		if !regexp.MustCompile(name + `\b`).MatchString(source) {
			t.Errorf("nothing gives %s %s", name, code)
		}
	}
	if len(seen) != len(declared(t)) {
		t.Errorf("%d codes explained, %d declared", len(seen), len(declared(t)))
	}
}

func TestHint(t *testing.T) {
	for code, want := range map[string]bool{
		"WA031": true, "EA500": true, "EF500": true, "EC500": true, "WF031": false, "EX500": false, "": false,
		"E":  false,
		"EA": false,
	} {
		if got := Hint(code) != ""; got != want {
			t.Errorf("hint of %q: %v, want %v", code, got, want)
		}
	}
}

const tableBegins, tableEnds = "<!-- codes: written by go test ./manifest -update -->\n", "<!-- /codes -->"

// The table of codes in the documentation is the one the program uses.
func TestCodesAreDocumented(t *testing.T) {
	const path = "../docs/reference/documents.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), tableBegins)
	table, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of codes", path)
	}
	want := codesTable()
	if *update {
		if err := os.WriteFile(path, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("%s is stale; run with -update", path)
	}
}

func codesTable() string {
	var b strings.Builder
	b.WriteString("| code | what is wrong | what to write |\n|---|---|---|\n")
	for _, e := range explanations() {
		var codes []string
		for _, area := range []byte(e.areas) {
			codes = append(codes, inArea(e.code, area))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(codes, " "), cell(e.meaning), cell(e.hint))
	}
	return b.String()
}

// cell escapes what a table would take for its own.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(s)
}
