package failure

import (
	"testing"

	"repute/web/query"
)

// TestFailuresSayWhatToDo: every failure has something to do next, and a search that takes too long keeps the hint that
// makes it shorter.
func TestFailuresSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"INVALID", "BAD_QUERY", "NOT_FOUND", "UNAUTHORIZED", "FORBIDDEN", "TOO_COMPLEX",
		"LIMITED", "GONE", "TIMEOUT",
		"UNAVAILABLE", "INTERNAL", ""} {
		q := &query.Error{Message: "no"}
		q.Extensions.Code = code
		if f := Of(q); f.Next == "" || f.Title == "" || f.Status == 0 {
			t.Errorf("%s: %+v", code, f)
		}
	}
	q := &query.Error{Message: "no"}
	q.Extensions.Code, q.Extensions.Hint = "TIMEOUT", "another word"
	if f := Of(q); f.Next != "another word" || f.Status != 503 {
		t.Errorf("%+v", f)
	}
	q.Extensions.Code = "GONE"
	if f := Of(q); f.Status != 410 || f.Title != "Not kept any more" {
		t.Errorf("%+v", f)
	}
	if f := Of(ErrNowhere); f.Next == "" {
		t.Errorf("%+v", f)
	}
}
