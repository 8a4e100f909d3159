package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"repute"
)

func TestProblem(t *testing.T) {
	cases := []struct {
		err    error
		status int
		code   string
		retry  bool
	}{
		{repute.Invalid("at", "wrong", "right"), 400, "invalid", false},
		{fmt.Errorf("agent: %w", repute.ErrNotFound), 404, "not_found", false},
		{repute.ErrConflict, 409, "conflict", false},
		{repute.ErrGone, 410, "gone", false},
		{repute.ErrLimited, 429, "limited", true},
		{fmt.Errorf("db at secret-host: %w", repute.ErrUnavailable), 503, "unavailable", true},
		{fmt.Errorf("query: %w", context.DeadlineExceeded), 503, "timeout", true},
		{fmt.Errorf("secret-host: %w", errors.Join(context.DeadlineExceeded, repute.ErrUnavailable)), 503, "timeout",
			true},
		{context.Canceled, 499, "canceled", false},
		{errors.New("secret-host exploded"), 500, "internal", false},
	}
	for _, c := range cases {
		b := ErrorOf(c.err)
		if b.Status != c.status || b.Code != c.code {
			t.Errorf("%v: %d %s", c.err, b.Status, b.Code)
		}
		if got := b.GetHeaders().Get("Retry-After") != ""; got != c.retry {
			t.Errorf("%v: Retry-After %v", c.err, got)
		}
		if raw, _ := json.Marshal(b); strings.Contains(string(raw), "secret") {
			t.Errorf("%v is shown: %s", c.err, raw)
		}
		if b.Title == "" || b.Detail == "" || b.Type != "urn:repute:problem:"+c.code {
			t.Errorf("%v: %+v", c.err, b)
		}
	}
}

func TestProblemNamesField(t *testing.T) {
	b := ErrorOf(fmt.Errorf("read: %w", repute.Invalid("cursor", "foreign\x00", "use next")))
	if len(b.Errors) != 1 || b.Errors[0].Field != "cursor" || b.Hint != "use next" {
		t.Errorf("%+v", b)
	}
	if strings.ContainsRune(b.Detail, 0) {
		t.Errorf("detail %q", b.Detail)
	}
}

func TestRetryAfterRoundsUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{time.Millisecond: "1", time.Second: "1",
		1001 * time.Millisecond: "2"} {
		b := ErrorBody{Status: 429, Retry: wait}
		w := httptest.NewRecorder()
		b.Write(w)
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%s: %s, want %s", wait, got, want)
		}
		if w.Header().Get("Content-Type") != ProblemType {
			t.Errorf("content type %s", w.Header().Get("Content-Type"))
		}
	}
}

// A service that is busy says with what, when to come back, and what it would answer now.
func TestBusySaysWhatToDo(t *testing.T) {
	b := ErrorOf(fmt.Errorf("score: %w", &repute.BusyError{What: "a walk by other roots: 8 others are made or wait",
		Hint: "ask without roots", Retry: 5 * time.Second}))
	w := httptest.NewRecorder()
	b.Write(w)
	if w.Code != 503 || w.Header().Get(RetryAfter) != "5" ||
		b.Detail != "a walk by other roots: 8 others are made or wait" ||
		b.Hint != "wait as long as Retry-After says, then ask again; or ask without roots" {
		t.Errorf("%d %v: %s", w.Code, w.Header(), w.Body)
	}
}
