package cli

import "testing"

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 differences", 1: "1 difference", 2: "2 differences"} {
		if got := Count(n, "difference"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What a server says acts on no terminal, and keeps its lines.
func TestVisibleLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\x1b[2Jb":        "a\ufffd[2Jb",
		"a\u202eb\r":       "a\ufffdb\ufffd",
		"goroutine 1\n\tx": "goroutine 1\n\tx",
		"\xff":             "\ufffd",
	} {
		if got := VisibleLines(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Visible("a\n\tb"); got != "a\ufffd\ufffdb" {
		t.Errorf("one line: %q", got)
	}
}
