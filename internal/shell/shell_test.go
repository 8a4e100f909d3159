package shell

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLinesAreQuoted: a shell reads each argument of a line as it was given, and runs nothing in it.
func TestLinesAreQuoted(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell:", err)
	}
	for _, subject := range []string{
		"policy", "step/pay:1", "", " ", "a';echo evil|cat;'", "'", "''", `\'`, `"`, "$(echo evil)", "`echo evil`",
		"$HOME", "a b",
		"a&b", "a>b", "*", "~", "#x", "!x", "-x", "a=b", "é 😀", `ends with \`, strings.Repeat("'", 900),
	} {
		line := Line("printf", "%s|", subject, "next")
		out, err := exec.CommandContext(t.Context(), shell, "-c", line).Output()
		if want := subject + "|next|"; err != nil || string(out) != want {
			t.Errorf("%q: %s gives %q, %v", subject, line, out, err)
		}
	}
	if got := Line("repute", "task", "cancel", "01H-a_b.c", "--orchestrator",
		"URL"); got != "repute task cancel 01H-a_b.c --orchestrator URL" {
		t.Error(got)
	}
}

// TestHiddenCharactersAreRefused: no line is offered whose argument a reader cannot see, or a terminal would act upon
// or cut.
func TestHiddenCharactersAreRefused(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"a\nb", "a\rb", "\x1b[201~x", "a\x00b", "\u202etxt", "a\u200bb", "\u2028", "\xff",
		"\ue000",
		strings.Repeat("x", MaxLine), strings.Repeat("'", MaxLine/3)} {
		if line := Line("repute", "--subject", subject); line != "" {
			t.Errorf("%q is offered as %q", subject, line)
		}
	}
}
