package node

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Pauses grow up to their bound and stay there, however often something fails.
func TestPausesAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "least"))
		most := least + time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "more"))
		times := rapid.IntRange(0, 1<<30).Draw(t, "times")
		want := least
		for range min(times, 60) {
			want = min(2*want, most)
		}
		if d := Doubled(least, most, times); d < want-want/10 || d > want+want/10+1 {
			t.Fatalf("%s after %d failures, want about %s", d, times, want)
		}
		b, bound := Backoff{Min: least, Max: most}, least
		for i := range 40 {
			if d := b.Next(); d < bound/2 || d > bound {
				t.Fatalf("pause %d is %s, want %s to %s", i, d, bound/2, bound)
			}
			bound = min(2*bound, most)
		}
		if b.Reset(); b.Next() > least {
			t.Fatal("a success does not end the pauses")
		}
	})
}
