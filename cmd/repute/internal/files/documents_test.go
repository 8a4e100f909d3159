package files

import (
	"errors"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/indexer/documents"
	"repute/store/docdb"
)

// A retry that would select nothing, or everything and something, is refused before the database is opened. Every
// reason that status may print is one that retry takes.
func TestCheckRetry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		filter docdb.RetryFilter
		agents []string
		all    bool
		field  string // of the error, "" for none
	}{
		{docdb.RetryFilter{}, nil, false, "retry"},
		{docdb.RetryFilter{}, nil, true, ""},
		{docdb.RetryFilter{Host: "a.example"}, nil, false, ""},
		{docdb.RetryFilter{}, []string{"8453:22"}, false, ""},
		{docdb.RetryFilter{Host: "a.example"}, nil, true, "all"},
		{docdb.RetryFilter{}, []string{"8453:22"}, true, "all"},
		{docdb.RetryFilter{Reason: "tired"}, nil, false, "reason"},
		{docdb.RetryFilter{Reason: documents.Reasons()[0]}, nil, true, "all"},
	} {
		err := checkRetry(c.filter, c.agents, c.all)
		var input *repute.InputError
		if errors.As(err, &input) != (c.field != "") || c.field != "" && input.Field != c.field {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, reason := range documents.Reasons() {
		if err := checkRetry(docdb.RetryFilter{Reason: reason}, nil, false); err != nil {
			t.Errorf("reason %s: %v", reason, err)
		}
	}
}

// The tables of documents status are in a stable order, and a part without rows has no title.
func TestPrintDocumentsStatus(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	due := now.Add(-90*time.Second - 300*time.Millisecond)
	s := DocumentsStatus{Total: 12, Due: 3, Planned: 4,
		Statuses: map[repute.DocumentStatus]int64{"valid": 7, "dead": 1, "pending": 4},
		Reasons:  map[string]int64{"timeout": 2, "dns": 1},
		Queue:    []queueStatus{{Rank: "new", Planned: 2, Due: 1, OldestDue: &due}, {Rank: "retry", Dead: 1}},
		Hosts:    []hostStatus{{Host: "a.example", Due: 1, Failed: 2, Dead: 3, Silent: 4}, {Failed: 1}}}
	const want = `URIs       12  due 3  planned 4  of agents, proofs and files of feedback
  dead     1
  pending  4
  valid    7

queue    due  planned  dead  oldest due
  new    1    2        0     1m30s
  retry  0    0        1     -

failures
  dns      1
  timeout  2

hosts        due  failed  dead  turns without an answer
  a.example  1    2       3     4
  (none)     0    1       0     0
`
	var out strings.Builder
	if err := s.print(&out, now); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	if err := (DocumentsStatus{}).print(&out, now); err != nil || strings.Contains(out.String(), "failures") ||
		strings.Contains(out.String(), "hosts") {
		t.Errorf("an empty queue: %q, %v", out.String(), err)
	}
}

// A count has the verb of its number.
func TestAreOf(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 documents are", 1: "1 document is", 2: "2 documents are"} {
		if got := areOf(n, "document"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// A reason that an operator wrote on several lines stays in one row of the table.
func TestOneLine(t *testing.T) {
	t.Parallel()
	if got := oneLine(" a\n\tb  c\r\n"); got != "a b c" {
		t.Errorf("%q", got)
	}
}
