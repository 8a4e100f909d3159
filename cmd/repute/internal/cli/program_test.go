package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"repute"
)

// A result is printed in one form: as JSON where --json was given, and by its text otherwise.
func TestShow(t *testing.T) {
	t.Parallel()
	for asJSON, want := range map[bool]string{true: "{\n  \"a\": 1\n}\n", false: "a is 1\n"} {
		var out strings.Builder
		p := &Program{Stdout: &out, JSON: asJSON}
		err := p.Show(map[string]int{"a": 1}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "a is 1")
			return err
		})
		if err != nil || out.String() != want {
			t.Errorf("--json %t: %q, %v", asJSON, out.String(), err)
		}
	}
}

// A table has its titles, a section only with a row, and cells of any type.
func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := NewTable(&out, "A", "LONG TITLE")
	if err := table.Flush(); err != nil || out.String() != "A  LONG TITLE\n" {
		t.Errorf("an empty table: %q, %v", out.String(), err)
	}
	out.Reset()
	section := Section(&out, "\nA\tB")
	if err := section.Flush(); err != nil || out.String() != "" {
		t.Errorf("an empty section: %q, %v", out.String(), err)
	}
	section.Row("one", 2)
	section.Row(true, "")
	if err := section.Flush(); err != nil || out.String() != "\nA     B\none   2\ntrue  \n" {
		t.Errorf("a section: %q, %v", out.String(), err)
	}
}

// A check that could not read its file exits with 2 and says so in JSON too; one that was interrupted says nothing.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &Program{Stdout: &out, JSON: true}
	err := p.Unreadable("file", fmt.Errorf("read: %w", context.Canceled))
	if !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("interrupted: %v, printed %q", err, out.String())
	}
	var exit ExitError
	err = p.Unreadable("file", errors.New("no \x1b[2J"))
	if !errors.As(err, &exit) || exit.Code != CodeUnchecked || exit.Text != "no \ufffd[2J" ||
		!strings.Contains(out.String(), `"source": "file"`) {
		t.Errorf("unreadable: %v, printed %q", err, out.String())
	}
}

// Nothing that removes data happens without a yes of a person or --yes.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, agrees := range map[string]bool{"yes\n": true, "yes": true, "y\n": false, "\n": false, "": false,
		"yes please\n": false} {
		p := &Program{Stdin: strings.NewReader(answer), Stderr: io.Discard, Terminal: true}
		if err := p.Confirm("all goes"); agrees != (err == nil) || !agrees && !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	p := &Program{Stdin: strings.NewReader("yes\n"), Stderr: io.Discard}
	if err := p.Confirm("all goes"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("without a terminal: %v", err)
	}
}
