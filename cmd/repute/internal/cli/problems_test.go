package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/cmd/repute/internal/config"
)

// Problems are shown by severity, errors first and each severity in the given order, and are counted whether there are
// any or not.
func TestWriteProblems(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	WriteProblems(&b, []ProblemLine{
		{Severity: repute.SeverityInfo, Code: "I1", Place: "/a", Message: "said\x1b[2J", Hint: "look"},
		{Severity: repute.SeverityError, Code: "E2", Place: "/b\n/c", Message: "wrong", Hint: "fix"},
		{Severity: repute.SeverityError, Code: "E1", Place: "/d", Message: "wrong", Hint: "fix"}})
	const want = "\nerror\n  E2 /b\ufffd/c  wrong\n        fix\n  E1 /d  wrong\n        fix\n" +
		"\ninfo\n  I1 /a  said\ufffd[2J\n        look\n\n2 errors, 0 warnings, 1 info\n"
	if b.String() != want {
		t.Errorf("got\n%q\nwant\n%q", b.String(), want)
	}
	b.Reset()
	WriteProblems(&b, nil)
	if b.String() != "\n0 errors, 0 warnings, 0 infos\n" {
		t.Errorf("no problems: %q", b.String())
	}
}

// Whatever a text has, what is shown of it has no character that a terminal acts on, and a text that was shown is shown
// again as it is. Lines and tabs stay only where they are asked for.
func TestVisible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string {
			return string(b)
		})).Draw(t, "text")
		one, lines := Visible(text), VisibleLines(text)
		if strings.ContainsAny(one, "\x1b\x00\x07\r\n\t\u202e\u2028") || Visible(one) != one {
			t.Fatalf("%q is shown as %q", text, one)
		}
		if strings.Count(lines, "\n") != strings.Count(text, "\n") || VisibleLines(lines) != lines ||
			strings.NewReplacer("\n", "\ufffd", "\t", "\ufffd").Replace(lines) != one {
			t.Fatalf("%q is shown as the lines %q", text, lines)
		}
	})
}

// A chain that is not stored is refused with those that are, or with how one is stored.
func TestIndexed(t *testing.T) {
	t.Parallel()
	var base, own repute.ChainStatus
	base.Name, base.Chain.ID, own.Name, own.Chain.ID = "base", 8453, "own", 5
	for _, c := range []struct {
		stored []repute.ChainStatus
		hint   string
	}{
		{nil, "repute serve or repute import"}, {[]repute.ChainStatus{base, own}, "indexed: base (8453), own (5)"},
	} {
		_, err := Indexed(c.stored, 7)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != "chain" || !strings.Contains(input.Hint, c.hint) {
			t.Errorf("%v: %v", c.stored, err)
		}
	}
	if got, err := Indexed([]repute.ChainStatus{base, own}, 5); err != nil || got.Name != "own" {
		t.Errorf("%+v, %v", got, err)
	}
	if got := Plain([]repute.ChainStatus{base, own}); len(got) != 2 || got[1].ID != 5 {
		t.Errorf("%+v", got)
	}
}

// A command that needs one chain takes the one that is named, also where only others know its contracts.
func TestOneChain(t *testing.T) {
	t.Parallel()
	known := repute.Chain{Name: "own", ID: 5, StartBlock: 3}
	known.Identity[0], known.Reputation[0] = 1, 2
	one := config.Config{Chains: []config.ChainConfig{{Name: "own"}}}
	if got, err := (&Program{}).OneChain(one, known); err != nil || got.ID != 5 || got.Identity != known.Identity {
		t.Errorf("completed: %+v, %v", got, err)
	}
	for name, c := range map[string]config.Config{"none": {}, "unknown": {Chains: []config.ChainConfig{{Name: "else"}}},
		"two": {Chains: []config.ChainConfig{{Name: "base"}, {Name: "ethereum"}}}} {
		if _, err := (&Program{}).OneChain(c, known); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The error of a file that cannot be written names what the user gave, and never a temporary file.
func TestWriteFileNamesTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "none", "out"), filepath.Join(dir, "file", "out"), dir} {
		err := (&Program{}).WriteFile(name, func(io.Writer) error { return nil })
		if err == nil || strings.Contains(err.Error(), "/.") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var out strings.Builder
	if err := (&Program{Stdout: &out}).WriteFile("-", func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	}); err != nil || out.String() != "text" {
		t.Errorf("standard output: %q, %v", out.String(), err)
	}
	if err := (&Program{}).WriteFile(os.DevNull, func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	}); err != nil {
		t.Errorf("a device: %v", err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("the device was replaced: %v, %v", info, err)
	}
}
