package judge_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"repute"
	"repute/manifest/judge"
)

// samples are files of every kind, each with something wrong, and the line of its first problem that has one.
func samples() map[judge.Kind]struct {
	text string
	line int
} {
	return map[judge.Kind]struct {
		text string
		line int
	}{
		judge.Registration: {"{\n  \"type\": \"https://eips.ethereum.org/EIPS/eip-8004#registration-v1\",\n  \"name\": 7,\n  \"services\": []\n}", 3},
		judge.Feedback:     {"{\n \"agentRegistry\": \"x\",\n \"agentId\": 1,\n \"clientAddress\": \"y\",\n \"value\": \"z\"}", 2},
		judge.AgentJSON:    {"{\n \"version\": \"1.4\",\n \"origin\": 7,\n \"intents\": []\n}", 3},
		judge.OAF:          {"---\nname: x\nversion: nothing\n---\nbody", 3},
	}
}

// TestProblemsHavePlaces: each kind of file is known by its content, and its problems have lines that are shown.
func TestProblemsHavePlaces(t *testing.T) {
	t.Parallel()
	for kind, sample := range samples() {
		r, err := judge.File([]byte(sample.text), judge.Auto)
		if err != nil || r.Kind != kind || r.Errors+r.Warnings+r.Infos == 0 || r.Size != len(sample.text) {
			t.Errorf("%s: %+v %v", kind, r, err)
			continue
		}
		at, shown := map[int]bool{}, map[int]string{}
		for _, p := range r.Problems {
			at[p.Line] = true
			if p.Hint == "" || p.Message == "" {
				t.Errorf("%s: %+v says not what to do", kind, p)
			}
		}
		for _, l := range r.Lines {
			shown[l.Number] = l.Text
		}
		if want := strings.Split(sample.text, "\n")[sample.line-1]; !at[sample.line] || shown[sample.line] != want {
			t.Errorf("%s: line %d is %q in %v, and has problems: %v: %+v", kind, sample.line, want, shown, at,
				r.Problems)
		}
	}
}

// TestWhatIsNoJSON: the place where a file stops to be JSON is shown.
func TestWhatIsNoJSON(t *testing.T) {
	t.Parallel()
	r, err := judge.File([]byte("{\n  \"name\": \"a\",\n  oops\n}"), judge.Registration)
	if err != nil || len(r.Problems) == 0 || r.Problems[0].Line != 3 || r.Problems[0].Column != 3 || len(r.Lines) == 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestRefusals: what is too large or of no kind is refused.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, try := range []struct {
		b    []byte
		kind judge.Kind
	}{{make([]byte, judge.MaxBytes+1), judge.Auto}, {[]byte("{}"), "luck"}} {
		if _, err := judge.File(try.b, try.kind); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s of %d bytes: %v", try.kind, len(try.b), err)
		}
	}
}

// check fails where a report is not bounded, not in order or not text.
func check(t interface{ Fatalf(string, ...any) }, b []byte, kind judge.Kind) {
	r, err := judge.File(b, kind)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if len(r.Problems) > 100 || len(r.Lines) > 400 {
		t.Fatalf("%d problems, %d lines", len(r.Problems), len(r.Lines))
	}
	last := 0
	for _, l := range r.Lines {
		if l.Number <= last || !utf8.ValidString(l.Text) || utf8.RuneCountInString(l.Text) > 242 ||
			strings.Contains(l.Text, "\n") {
			t.Fatalf("line %d after %d: %q", l.Number, last, l.Text)
		}
		last = l.Number
	}
	for _, p := range r.Problems {
		if p.Line < 0 || p.Line > strings.Count(string(b), "\n")+1 {
			t.Fatalf("%+v", p)
		}
	}
}

// TestReportsAreBounded: whatever the file is, its report is.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"{", "}", "[", "]", "---", "name: x", `"name":7,`, `"services":[`, "\xff",
			strings.Repeat("w", 500), "\r"})
		text := strings.Join(rapid.SliceOfN(line, 0, 60).Draw(t, "lines"), "\n")
		check(t, []byte(text), rapid.SampledFrom(judge.Kinds()).Draw(t, "kind"))
	})
}

// FuzzFile: no bytes of strangers break the check.
func FuzzFile(f *testing.F) {
	for _, s := range samples() {
		f.Add([]byte(s.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > judge.MaxBytes {
			return
		}
		for _, kind := range judge.Kinds() {
			check(t, b, kind)
		}
	})
}
