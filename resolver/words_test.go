package resolver

import (
	"strings"
	"testing"
)

// Every reason has words, and not its code in place of them.
func TestReasonsHaveWords(t *testing.T) {
	t.Parallel()
	for _, r := range append(Reasons(), ReasonCanceled) {
		if w := r.Words(); !strings.Contains(w, " ") || strings.Contains(w, "_") {
			t.Errorf("%s: %q", r, w)
		}
	}
}
