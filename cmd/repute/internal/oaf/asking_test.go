package oaf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute"
	"repute/manifest/oaf/harness"
	"repute/manifest/oaf/tree"
)

// A flag that has no effect without --ask-servers is refused by its name: its user believes that servers are asked.
func TestAskingFlags(t *testing.T) {
	t.Parallel()
	for field, a := range map[string]asking{"programs": {programs: true}, "env": {env: []string{"A"}},
		"allow-host": {hosts: []string{"a:1"}}} {
		var input *repute.InputError
		if err := a.check(); !errors.As(err, &input) || input.Field != field ||
			!strings.Contains(input.Hint, "--ask-servers") {
			t.Errorf("%s: %v", field, err)
		}
		a.servers = true
		if err := a.check(); err != nil {
			t.Errorf("%s with --ask-servers: %v", field, err)
		}
	}
	if err := (&asking{}).check(); err != nil {
		t.Errorf("no flags: %v", err)
	}
}

// A problem is at its file, and at the line and the member where it has them.
func TestPlaceOfProblem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		problem Problem
		want    string
	}{
		{Problem{File: "AGENTS.md"}, "AGENTS.md"}, {Problem{File: "AGENTS.md", Line: 3}, "AGENTS.md:3"},
		{Problem{File: "a.json", Path: "/x//y/"}, "a.json /x/y"},
		{Problem{File: "a.json", Line: 3, Path: "/x"}, "a.json:3 /x"},
	} {
		if got := c.problem.place(); got != c.want {
			t.Errorf("%+v: %q", c.problem, got)
		}
	}
}

// Notes about what is not carried go apart from the names of files, and neither can act on a terminal.
func TestCarried(t *testing.T) {
	t.Parallel()
	c := Carried{Files: []string{"a\x1b", "b"}, Notes: []Note{{Kind: harness.Guessed, Agent: "x/y", Field: "key",
		Reason: "made of\nthe name"}, {Field: "hooks", Reason: "no place"}},
		Problems: []Problem{{Code: "P1", File: "f", Line: 2, Message: "wrong\x07", Hint: "fix"}}}
	var out, notes strings.Builder
	c.write(&out, &notes)
	const want = "P1 f:2: wrong\ufffd (fix)\nguessed: x/y: key: made of\ufffdthe name\nnot carried: hooks: no place\n"
	if out.String() != "a\ufffd\nb\n" || notes.String() != want {
		t.Errorf("printed %q and %q", out.String(), notes.String())
	}
}

// Sources and archives that are none are refused with what to name instead, and nothing is written.
func TestSourcesThatAreNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "AGENTS.md")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{fromClaudeCode, fromLetta, "goose", ""} {
		source := map[string]string{fromClaudeCode: file, fromLetta: dir}[from]
		if _, err := imports(source, from); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", from, err)
		}
	}
	_, err := readArchive(file)
	var input *repute.InputError
	if !errors.As(err, &input) || !strings.Contains(input.Hint, dir) {
		t.Errorf("AGENTS.md in place of its directory: %v", err)
	}
	for _, name := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := readArchive(name); !errors.As(err, &input) || input.Field != "file" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Files are written all or none where they must not replace others.
func TestWriteReplacesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []tree.File{{Path: "a", Data: []byte("new")}, {Path: "b", Data: []byte("new")}}
	if err := write(dir, files, false); !errors.Is(err, repute.ErrConflict) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a file exists: %v", err)
	}
	left, err := os.ReadDir(dir)
	if b, other := os.ReadFile(filepath.Join(dir, "b")); err != nil || other != nil || len(left) != 1 ||
		string(b) != "old" {
		t.Errorf("the directory has %v, b is %q", left, b)
	}
	if err := write(dir, files, true); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b")); err != nil || string(b) != "new" {
		t.Errorf("b is %q, %v", b, err)
	}
	if err := write(filepath.Join(dir, "a", "below"), files, false); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("below a file: %v", err)
	}
}
