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
