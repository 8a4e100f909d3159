package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
)

// TestStreamsAreCounted: no caller has more streams than a caller may, all together have no more than all may, each
// stream that ended makes room for another one, and nothing is kept of callers without streams.
func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := StreamLimit{Caller: rapid.IntRange(1, 3).Draw(t, "caller"), All: rapid.IntRange(1, 6).Draw(t, "all")}
		open, all := map[string]int{}, 0
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			who := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who")
			if open[who] > 0 && rapid.Bool().Draw(t, "leaves") {
				limit.Leave(who)
				open[who], all = open[who]-1, all-1
				continue
			}
			err := limit.Enter(who)
			if fits := open[who] < limit.Caller && all < limit.All; (err == nil) != fits ||
				!fits && !errors.Is(err, repute.ErrLimited) {
				t.Fatalf("%d of %d streams, %d of all %d: %v", open[who], limit.Caller, all, limit.All, err)
			}
			if err == nil {
				open[who], all = open[who]+1, all+1
			}
		}
		for who, n := range open {
			for range n {
				limit.Leave(who)
			}
		}
		if limit.now != 0 || len(limit.callers) != 0 {
			t.Fatalf("%d streams of %v are left", limit.now, limit.callers)
		}
	})
}

// TestEventStream: what a stream sends is what browsers read as events, and its head comes once, with the first text.
func TestEventStream(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s := NewEventStream(w)
	if s.Begun() || w.Flushed {
		t.Error("a stream has begun before anything was sent")
	}
	for _, err := range []error{s.Begin(), s.Begin(), s.Send("7-1", "feedback.given", []byte(`{"a":1}`)), s.Beat(),
		s.Place("7-2")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "retry: 1000\n\nid: 7-1\nevent: feedback.given\ndata: {\"a\":1}\n\n: still here\n\nid: 7-2\n\n"
	if got := w.Body.String(); got != want || !s.Begun() || !w.Flushed {
		t.Errorf("%q", got)
	}
	if h := w.Header(); w.Code != http.StatusOK || h.Get("Content-Type") != "text/event-stream" ||
		h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
		t.Errorf("%d %v", w.Code, h)
	}
}

// TestMatchesETag: the tags of If-None-Match are compared weakly.
func TestMatchesETag(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{`"a"`: true, `W/"a"`: true, `"b", W/"a"`: true, `"b" ,"a"`: true, "*": true,
		"": false, `"b"`: false, `a`: false, `"A"`: false, `"a`: false, `W/"b"`: false} {
		for _, tag := range []string{`"a"`, `W/"a"`} {
			if got := MatchesETag(header, tag); got != want {
				t.Errorf("%s with %s: %t", header, tag, got)
			}
		}
	}
}

// TestKeptAnswers: an answer is read from Redis as it was written, and other bytes are no answer or one of the same
// parts, no matter who wrote them.
func TestKeptAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`[ -~]{0,40}`) // as headers are
		k := Kept{line.Draw(t, "type"), line.Draw(t, "tag"), line.Draw(t, "caching"),
			rapid.SliceOf(rapid.Byte()).Draw(t, "body")}
		got, whole := parseAnswer(bytesOf(k))
		if !whole || got.ContentType != k.ContentType || got.ETag != k.ETag || got.CacheControl != k.CacheControl ||
			!bytes.Equal(got.Body, k.Body) {
			t.Fatalf("%+v became %+v", k, got)
		}
		raw := rapid.SliceOf(rapid.SampledFrom([]byte("a\n\r\x00"))).Draw(t, "foreign")
		got, whole = parseAnswer(raw)
		if whole != (bytes.Count(raw, []byte("\n")) >= 3) ||
			strings.ContainsRune(got.ContentType+got.ETag+got.CacheControl, '\n') {
			t.Fatalf("%q is read as %+v", raw, got)
		}
	})
}

// TestRequestIDs: the id of a caller is taken where it is harmless in a log.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{"a-B_9.": true, strings.Repeat("a", 64): true, "": false,
		strings.Repeat("a", 65): false, "a b": false, "a\n": false, "é": false, "<": false} {
		if harmlessID(id) != want {
			t.Errorf("%q", id)
		}
	}
}
