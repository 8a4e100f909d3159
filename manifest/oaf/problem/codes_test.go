package problem

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"repute"
)

var update = flag.Bool("update", false, "write the table of codes into the documentation")

// source returns the text of all code files below manifest/oaf but the lists of this package.
func source(t *testing.T) string {
	var b strings.Builder
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		base := filepath.Base(name)
		if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			base == "codes.go" || base == "explain.go" {
			return err
		}
		text, err := os.ReadFile(name)
		b.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryCodeIsExplainedAndGiven(t *testing.T) {
	text, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	code := source(t)
	numbers, declared := map[string]bool{}, 0
	for _, m := range regexp.MustCompile(`(Code\w+)\s+= "([EWI]O\d{3})"`).FindAllStringSubmatch(string(text), -1) {
		declared++
		e := explain(m[2])
		if e.meaning == "" || Hint(m[2]) == "" || numbers[m[2][1:]] {
			t.Errorf("%s %s is not explained, or has the number of another code", m[1], m[2])
		}
		numbers[m[2][1:]] = true
		if m[1] != "CodeMore" && !regexp.MustCompile(`problem\.`+m[1]+`\b`).MatchString(code) {
			t.Errorf("%s %s is given by nothing", m[1], m[2])
		}
		if repute.SeverityOf(m[2]) == repute.SeverityError && !e.strict {
			t.Errorf("%s is an error, and not a strict one", m[2])
		}
	}
	if declared != len(explanations()) {
		t.Errorf("%d codes are declared, %d explained", declared, len(explanations()))
	}
	for _, unknown := range []string{"", "E", "WO999", "EJ700", "EO761"} {
		if Hint(unknown) != "" {
			t.Errorf("a fix for %q", unknown)
		}
	}
}

// The table of codes in the documentation is the one the program uses.
func TestCodesAreDocumented(t *testing.T) {
	const path = "../../../docs/reference/oaf.md"
	const begin, end = "<!-- codes: written by go test ./manifest/oaf/problem -update -->\n", "<!-- /codes -->"
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
		cell := strings.NewReplacer("|", `\|`, "<", "&lt;", "{", "\\{")
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

func TestListIsBoundedAndStrict(t *testing.T) {
	l := &List{Profile: Strict}
	for i := range maxProblems + 50 {
		l.Add(CodeSlug, Place{File: "AGENTS.md"}, "x %d", i)
	}
	all := l.Problems()
	if len(all) != maxProblems+1 || repute.CountSeverity(all, repute.SeverityError) != maxProblems ||
		repute.CountSeverity(all,
			repute.SeverityInfo) != 1 {
		t.Errorf("%d problems, %d errors", len(all), repute.CountSeverity(all, repute.SeverityError))
	}
	if all[len(all)-1].Code != "EO744" && all[0].Code != CodeMore {
		t.Errorf("first %s, last %s", all[0].Code, all[len(all)-1].Code)
	}
}

// Warnings never hide an error that follows them, and errors never hide a warning: a list with an error stays failed.
func TestWarningsHideNoError(t *testing.T) {
	l := &List{}
	for i := range 3 * maxProblems {
		l.Add(CodeMember, Place{File: "AGENTS.md"}, "x %d", i)
	}
	l.Add(CodeMissing, Place{File: "AGENTS.md"}, "version is required")
	if _, bad := repute.FirstError(l.Problems()); !bad || l.Len() != maxProblems+2 {
		t.Errorf("an error after many warnings is hidden: %v among %d problems", !bad, l.Len())
	}
	for i := range 3 * maxProblems {
		l.Add(CodeMissing, Place{File: "AGENTS.md"}, "x %d", i)
	}
	more := 0
	for _, p := range l.Problems() {
		if p.Code == CodeMore {
			more++
		}
	}
	if n := repute.CountSeverity(l.Problems(), repute.SeverityError); n != maxProblems || more != 2 ||
		l.Len() != 2*maxProblems+2 {
		t.Errorf("%d errors and %d marks among %d problems", n, more, l.Len())
	}
}

// One problem is listed once, with what to write, and its text cannot act on a terminal.
func TestProblemsAreListedOnceAndVisible(t *testing.T) {
	l := &List{}
	at := Place{File: "AGENTS.md", Path: "/tags", Line: 3}
	for range 3 {
		l.Add(CodeType, at, "is no %s", "list\t\x1b[2J")
	}
	l.Suggest(CodeMember, at, "write tags", "x")
	all := l.Problems()
	if len(all) != 2 || all[0].Message != `is no list\t\x1b[2J` || all[0].Hint != Hint(CodeType) ||
		all[1].Hint != "write tags" {
		t.Errorf("%+v", all)
	}
}
