package web

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute/web/query"
)

// TestParametersByPath: every value of a file of parameters is listed once with its path, in order.
func TestParametersByPath(t *testing.T) {
	t.Parallel()
	got, err := valuesOf(`{"version":"7","walk":{"steps":3,"list":[1.50,true,null]},"gates":[{"id":"a"}]}`)
	want := []value{{"version", "7"}, {"walk.steps", "3"}, {"walk.list[0]", "1.50"}, {"walk.list[1]", "true"},
		{"walk.list[2]", "<nil>"}, {"gates[0].id", "a"}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v %v", got, err)
	}
	for i, v := range got {
		if v != want[i] {
			t.Errorf("%v, not %v", v, want[i])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int(), 0, 600).Draw(t, "list")
		text, err := json.Marshal(map[string]any{"list": list})
		if err != nil {
			t.Fatal(err)
		}
		values, err := valuesOf(string(text))
		if err != nil || len(values) != min(len(list), maxValues) {
			t.Fatalf("%d of %d: %v", len(values), len(list), err)
		}
	})
	for _, text := range []string{"", "{", `{"a":}`, "["} {
		if _, err := valuesOf(text); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}

// TestProblemsAtLines: each problem is listed with its line, those of the file as a whole are apart, and gaps are
// marked.
func TestProblemsAtLines(t *testing.T) {
	t.Parallel()
	at := func(n int64) *int64 { return &n }
	f := checkedFile{Problems: []fileProblem{{Code: "whole"}, {Code: "a", Line: at(3)}, {Code: "b", Line: at(3)},
		{Code: "c", Line: at(9)}}}
	for _, n := range []int64{2, 3, 4, 9} {
		f.Lines = append(f.Lines, struct {
			Number int64
			Text   string
			Cut    bool
		}{Number: n})
	}
	var told strings.Builder
	for _, l := range f.AnnotatedLines() {
		if l.Gap {
			told.WriteString("…")
		}
		for _, p := range l.Problems {
			told.WriteString(p.Code)
		}
		told.WriteString("|")
	}
	if told.String() != "…|ab||…c|" || len(f.Whole()) != 1 {
		t.Errorf("%s %v", told.String(), f.Whole())
	}
}

// TestGuardedPages: a token is asked for where it could help; other failures keep their status and the time of a retry.
func TestGuardedPages(t *testing.T) {
	t.Parallel()
	failing := func(code, retry string) error {
		q := &query.Error{Message: "no"}
		q.Extensions.Code, q.Extensions.RetryAfter = code, json.Number(retry)
		return q
	}
	for _, try := range []struct {
		err          error
		wanted, live bool
		status       int
		title        string
	}{
		{failing("UNAUTHORIZED", ""), true, false, 0, "A token is needed"},
		{failing("FORBIDDEN", ""), true, false, 0, "The token is not enough"},
		{failing("NOT_FOUND", ""), false, false, 0, "Nothing here"},
		{failing("UNAVAILABLE", "2"), false, true, 503, "The index does not answer"},
		{errors.New("broken"), false, false, 500, "Internal error"},
	} {
		p := &page{}
		p.Body = guard(p, "shown", true, try.err)
		g, isGuarded := p.Body.(guarded)
		if !isGuarded || g.Why == nil || g.Shown != nil || g.Wanted != try.wanted || g.Live != try.live ||
			p.Status != try.status ||
			g.Why.Title != try.title || !p.Private {
			t.Errorf("%v: %+v %+v", try.err, g, p)
		}
	}
	p := &page{Path: "/ui/runs/<x>", Query: map[string][]string{"after": {"a b"}}}
	p.Body = guard(p, "shown", true, nil)
	if g, _ := p.Body.(guarded); g.Why != nil || g.Shown != "shown" || !g.Live || p.Status != 0 {
		t.Errorf("%+v", g)
	}
	if got := p.Here(); got != "/ui/runs/%3Cx%3E?after=a+b" {
		t.Errorf("%s", got)
	}
}
