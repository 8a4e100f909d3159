package journal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"repute/orchestrator/journal"
)

// TestDigestOfParts: only the same parts give the same digest. Parts that are divided otherwise are other parts.
func TestDigestOfParts(t *testing.T) {
	t.Parallel()
	parts := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]byte("01:a")), 0, 3), 0, 4)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := parts.Draw(rt, "a"), parts.Draw(rt, "b")
		same := slices.EqualFunc(a, b, bytes.Equal)
		if got := journal.Digest(a...) == journal.Digest(b...); got != same {
			rt.Fatalf("%q and %q: the same digest is %t", a, b, got)
		}
	})
	if journal.Digest([]byte("ab"), []byte("c")) == journal.Digest([]byte("a"), []byte("bc")) {
		t.Error("the border between two parts is not in the digest")
	}
}

// TestAttempts: a key belongs to exactly the attempt that made it, also where attempts share digits. Keys of agents
// stand behind a phase.
func TestAttempts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		made := rapid.IntRange(1, 120).Draw(rt, "made")
		asked := rapid.IntRange(1, 120).Draw(rt, "asked")
		key := "execute/" + rapid.String().Draw(rt, "key")
		if got := journal.OfAttempt(asked, journal.AttemptKey(made, key)); got != (asked == made) {
			rt.Fatalf("%q of attempt %d is of attempt %d: %t", key, made, asked, got)
		}
	})
	if got := journal.AttemptKey(1, "execute/pay"); got != "execute/pay" {
		t.Errorf("the key of the first attempt is %q", got)
	}
	if journal.OfAttempt(1, journal.AttemptKey(12, "x")) || journal.OfAttempt(1, journal.AttemptKey(2, "x")) {
		t.Error("a key of a later attempt counts as one of the first")
	}
}

// TestShorten: a text is cut to its bound in whole characters, with a mark, and a short one stays as it is.
func TestShorten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		letter := rapid.SampledFrom([]string{"a", "é", "€", "𝄞"}).Draw(rt, "letter")
		text := strings.Repeat("x", rapid.IntRange(0, 3).Draw(rt, "offset")) +
			strings.Repeat(letter, rapid.IntRange(0, 4100).Draw(rt, "letters"))
		got := journal.Shorten(text)
		if len(text) <= 4000 {
			if got != text {
				rt.Fatalf("%d bytes are changed", len(text))
			}
			return
		}
		cut, marked := strings.CutSuffix(got, "…")
		if !marked || len(cut) > 4000 || len(cut) < 4000-utf8.UTFMax || !strings.HasPrefix(text, cut) ||
			!utf8.ValidString(got) {
			rt.Fatalf("%d bytes became %d, marked %t", len(text), len(cut), marked)
		}
	})
}

// TestBounded: a request that is too large is replaced by its size and digest, so that two of them are still told
// apart.
func TestBounded(t *testing.T) {
	t.Parallel()
	small := json.RawMessage(`"` + strings.Repeat("x", 64<<10-2) + `"`)
	if got := journal.Bounded(small); !bytes.Equal(got, small) {
		t.Errorf("%d bytes became %d", len(small), len(got))
	}
	seen := map[string]bool{}
	for i := range 3 {
		large := json.RawMessage(fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 64<<10)))
		got := journal.Bounded(large)
		var kept struct {
			Bytes  int
			SHA256 string
		}
		if err := json.Unmarshal(got, &kept); err != nil || kept.Bytes != len(large) ||
			kept.SHA256 != journal.Digest(large) || len(got) > 200 {
			t.Errorf("%s: %v", got, err)
		}
		seen[kept.SHA256] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d digests of three requests", len(seen))
	}
}

// TestJSON: what cannot be encoded is null and no empty text, which would be no JSON in the database.
func TestJSON(t *testing.T) {
	t.Parallel()
	for _, v := range []any{make(chan int), func() {}, json.RawMessage(`{`)} {
		if got := string(journal.JSON(v)); got != "null" {
			t.Errorf("%T: %s", v, got)
		}
	}
	if got := string(journal.JSON(map[string]int{"b": 1, "a": 2})); got != `{"a":2,"b":1}` {
		t.Errorf("the members have no order: %s", got)
	}
}

// TestReplayed: a call that succeeded has no error when it is replayed, and one that failed has its text.
func TestReplayed(t *testing.T) {
	t.Parallel()
	if err := journal.Replayed(""); err != nil {
		t.Error(err)
	}
	if err := journal.Replayed("no funds"); err == nil || err.Error() != "no funds" {
		t.Error(err)
	}
}

// TestNewID: ids have the form of names in URLs and are all different.
func TestNewID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := journal.NewID("act")
		rest, ok := strings.CutPrefix(id, "act_")
		if !ok || len(rest) != 26 || strings.Trim(rest, "0123456789abcdefghijklmnopqrstuv") != "" || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}
