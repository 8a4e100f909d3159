package cli

import (
	"fmt"
	"strings"

	"repute"
)

// ProblemLine is a problem of a checked file, as reports show it. Place and Message may quote the file and are made
// safe. Code and Hint are texts of this program.
type ProblemLine struct {
	Severity                   repute.Severity
	Code, Place, Message, Hint string
}

// WriteProblems writes problems under the heading of their severity, errors first, and how many there are.
func WriteProblems(b *strings.Builder, problems []ProblemLine) {
	var counts []string
	for _, s := range []repute.Severity{repute.SeverityError, repute.SeverityWarning, repute.SeverityInfo} {
		n := 0
		for _, p := range problems {
			if p.Severity != s {
				continue
			}
			if n++; n == 1 {
				fmt.Fprintf(b, "\n%s\n", s)
			}
			fmt.Fprintf(b, "  %s %s  %s\n        %s\n", p.Code, Visible(p.Place), Visible(p.Message), p.Hint)
		}
		counts = append(counts, Count(n, string(s)))
	}
	fmt.Fprintf(b, "\n%s\n", strings.Join(counts, ", "))
}
