package problem

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"repute"
)

// TestMessagesAreVisible: whatever a file of strangers has, no message and no hint has a control character that a
// terminal would obey, and everything else stays as it was written.
func TestMessagesAreVisible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		l := &List{}
		l.Suggest(CodeType, Place{}, text, "%s", text)
		p := l.Problems()[0]
		for _, got := range []string{p.Message, p.Hint} {
			if strings.ContainsFunc(got, unicode.IsControl) {
				rt.Fatalf("%q", got)
			}
			if !strings.ContainsFunc(text, unicode.IsControl) && got != text {
				rt.Fatalf("%q became %q", text, got)
			}
		}
	})
	for text, want := range map[string]string{"a\tb": `a\tb`, "\x1b[2J": `\x1b[2J`, "\u009b2J": `\u009b2J`, "'\n'": `'\n'`,
		"\x7f": `\x7f`, "it's": "it's", `a\tb`: `a\tb`} {
		if got := escaped(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// TestOrder: problems are ordered by file and line. Those of one line stay in the order in which they were found.
func TestOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		l, found := &List{}, map[Place][]string{}
		for range rapid.IntRange(0, 20).Draw(rt, "problems") {
			at := Place{File: rapid.SampledFrom([]string{"", "AGENTS.md", "skills/a/SKILL.md"}).Draw(rt, "file"),
				Line: rapid.IntRange(0, 2).Draw(rt, "line")}
			text := rapid.StringMatching(`[a-z]{8}`).Draw(rt, "text")
			l.Add(CodeMember, at, "%s", text)
			if !slices.Contains(found[at], text) {
				found[at] = append(found[at], text)
			}
		}
		got, before := map[Place][]string{}, Problem{}
		for _, p := range l.Problems() {
			if p.File < before.File || p.File == before.File && p.Line < before.Line {
				rt.Fatalf("%+v follows %+v", p, before)
			}
			before = p
			at := Place{File: p.File, Line: p.Line}
			got[at] = append(got[at], p.Message)
		}
		for at, texts := range found {
			if !slices.Equal(got[at], texts) {
				rt.Fatalf("%+v: %q, not %q", at, got[at], texts)
			}
		}
	})
}

// TestStrictRaisesMarkedCodes: the strict profile makes errors of the codes that are marked, with the same number, and
// leaves the others as they are. Every code has its hint in both profiles.
func TestStrictRaisesMarkedCodes(t *testing.T) {
	t.Parallel()
	for _, e := range explanations() {
		for _, profile := range []Profile{Lenient, Strict} {
			l := &List{Profile: profile}
			l.Add(e.code, Place{File: "AGENTS.md"}, "x")
			p := l.Problems()[0]
			want := e.code
			if profile == Strict && e.strict {
				want = "E" + e.code[1:]
			}
			if p.Code != want || p.Severity != repute.SeverityOf(want) || p.Hint != e.hint || Hint(p.Code) != e.hint {
				t.Errorf("%s, profile %d: %+v", e.code, profile, p)
			}
			if l.HasError("AGENTS.md") != (p.Severity == repute.SeverityError) || l.HasError("") {
				t.Errorf("%s, profile %d: the file has an error: %t", e.code, profile, l.HasError("AGENTS.md"))
			}
		}
	}
}

// TestAppendKeepsProblems: problems of another list are not judged again by this one's profile, and neither is one left
// out for being there already.
func TestAppendKeepsProblems(t *testing.T) {
	t.Parallel()
	other := &List{}
	other.Add(CodeMember, Place{File: "b"}, "x")
	l := &List{Profile: Strict}
	l.Append(other.Problems())
	l.Append(other.Problems())
	l.Add(CodeMissing, Place{File: "a"}, "y")
	all := l.Problems()
	if l.Len() != 3 || all[0].File != "a" || all[1] != all[2] || all[1].Code != CodeMember {
		t.Errorf("%+v", all)
	}
	if n := repute.CountSeverity(all, repute.SeverityError); n != 1 {
		t.Errorf("%d errors", n)
	}
}

// FuzzHint: no text is a code by accident.
func FuzzHint(f *testing.F) {
	for _, seed := range []string{"", "E", "EO", "WO700", "XO700", "eo700", "EO7000", CodeMore, CodeMissing} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code string) {
		known := slices.ContainsFunc(explanations(), func(e explanation) bool {
			return e.code == code || e.strict && "E"+e.code[1:] == code
		})
		if got := Hint(code); (got != "") != known {
			t.Errorf("%q: %q", code, got)
		}
	})
}
