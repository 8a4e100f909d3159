package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api"
	"repute/api/wire/push"
	"repute/store/changedata"
)

// changesFrom reads pages of the feed from a cursor to its end.
func changesFrom(t testing.TB, s *httptest.Server, since string, params ...string) (all []push.Change) {
	t.Helper()
	for {
		if since != "" {
			params = append(params, "since", since)
		}
		page := as[push.ChangeList](t, get(t, s, "/changes"+query(params...)))
		if since != "" {
			params = params[:len(params)-2]
		}
		all = append(all, page.Changes...)
		if page.Next == since {
			return all
		}
		since = page.Next
	}
}

// wholeFeed reads the feed from a cursor to what the database has. Transactions of other tests on the same server hold
// changes back for a while.
func wholeFeed(t testing.TB, s *httptest.Server, l *ledger, since string) (all []push.Change) {
	t.Helper()
	waitFor(t, "the feed", func() bool {
		var newest string
		if err := l.db.Pool().QueryRow(t.Context(),
			"select xid::text || '-' || seq from changes order by xid desc, seq desc limit 1").Scan(&newest); err != nil {
			t.Fatal(err)
		}
		all = changesFrom(t, s, since, "limit", "7")
		return newest == since || len(all) > 0 && all[len(all)-1].Cursor == newest
	})
	return all
}

// Pages of the feed have every change once, in the order of the store, and filters leave out the rest.
func TestChanges(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{}, unlimited())
	all := wholeFeed(t, s, l, "")
	if len(all) < 10 {
		t.Fatalf("%d changes", len(all))
	}
	kinds := map[string]int{}
	for i, c := range all {
		kinds[c.Kind]++
		if i > 0 && c.Cursor == all[i-1].Cursor {
			t.Errorf("%s twice", c.Cursor)
		}
	}
	if got := changesFrom(t, s, "", "kinds", changedata.KindFeedback); len(got) != kinds[changedata.KindFeedback] ||
		len(got) == 0 {
		t.Errorf("%d ratings of %d", len(got), kinds[changedata.KindFeedback])
	}
	id := string(*all[0].Agent)
	for _, c := range changesFrom(t, s, all[3].Cursor, "agent", id, "limit", "2") {
		if c.Agent == nil || string(*c.Agent) != id {
			t.Errorf("a change of %v in those of %s", c.Agent, id)
		}
	}
}

func TestChangesBadInput(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{}, unlimited())
	for path, field := range map[string]string{
		"/changes?since=x": "since", "/changes?since=1-x": "since", "/changes?kinds=nothing": "kinds",
		"/changes?finality=safe": "finality", "/changes?limit=0": "limit", "/changes?limit=501": "limit",
		"/changes?agent=zero": "id", "/changes?chainId=-1": "chainId", "/changes?block=1": "block",
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			got := get(t, s, path, "Accept", accept)
			if got.status != http.StatusBadRequest || problemOf(t, got).Errors[0].Field != field {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	}
	if got := get(t, s, "/changes?since=1-1"); got.status != http.StatusGone {
		t.Errorf("a cursor that is not kept: %d %s", got.status, got.body)
	}
	if got := get(t, s, "/changes", "Accept", "text/event-stream", "Last-Event-ID",
		"1-1"); got.status != http.StatusGone {
		t.Errorf("a stream from a cursor that is not kept: %d %s", got.status, got.body)
	}
}

// streamed are the ids of events of a stream, as they come.
func streamed(t testing.TB, s *httptest.Server, path, last string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	ids := make(chan string)
	go func() {
		defer close(ids)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		id := ""
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = rest
			} else if strings.HasPrefix(lines.Text(), "data: ") {
				select {
				case ids <- id:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return ids
}

// next returns the next id, "" when the stream ended.
func next(t testing.TB, ids <-chan string) string {
	t.Helper()
	select {
	case id := <-ids:
		return id
	case <-time.After(30 * time.Second):
		t.Fatal("no event came")
		return ""
	}
}

// A stream without a cursor begins with what changes next; one with a cursor has all after it. Streams that begin at
// different times, with different filters, see the same order.
func TestChangesStream(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{}, unlimited())
	before := wholeFeed(t, s, l, "")
	fresh := streamed(t, s, "/changes", "")
	whole := streamed(t, s, "/changes", before[2].Cursor)
	ratings := streamed(t, s, "/changes?kinds=feedback.given", before[0].Cursor)
	for round := range 3 {
		l.add(ratingOf(0, 40, uint64(round+1), 77, 0, "quality", ""))
	}
	all := wholeFeed(t, s, l, "")
	added := all[len(before):]
	if len(added) < 3 {
		t.Fatalf("%d changes were added", len(added))
	}
	for i, c := range added {
		if id := next(t, fresh); id != c.Cursor {
			t.Errorf("change %d of the new stream is %s, want %s", i, id, c.Cursor)
		}
	}
	for i, c := range all[3:] {
		if id := next(t, whole); id != c.Cursor {
			t.Errorf("change %d of the whole stream is %s, want %s", i, id, c.Cursor)
		}
	}
	for _, c := range all[1:] {
		if c.Kind == changedata.KindFeedback {
			if id := next(t, ratings); id != c.Cursor {
				t.Errorf("rating %s, want %s", id, c.Cursor)
			}
		}
	}
}

// Streams end when the server stops, and a caller has no more than its share of them.
func TestChangesStreamsEnd(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	s, _ := populated(t, api.Options{Done: done, Streams: 2}, unlimited())
	first, second := streamed(t, s, "/changes?chainId=3", ""),
		streamed(t, s, "/changes?chainId=3&finality=finalized", "")
	if got := get(t, s, "/changes", "Accept", "text/event-stream"); got.status != http.StatusTooManyRequests {
		t.Errorf("a third stream: %d %s", got.status, got.body)
	}
	close(done)
	for _, ids := range []<-chan string{first, second} {
		select {
		case id, more := <-ids:
			if more {
				t.Errorf("%s came", id)
			}
		case <-time.After(30 * time.Second):
			t.Error("a stream did not end")
		}
	}
}

// Changes of a block come to a stream of final changes once the block is final, and not before.
func TestFinalChangesStream(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{}, unlimited())
	all := wholeFeed(t, s, l, "")
	last := all[len(all)-1].Cursor
	ids := streamed(t, s, "/changes?finality=finalized", last)
	l.add(ratingOf(0, 41, 1, 80, 0, "quality", ""))
	added := wholeFeed(t, s, l, last)
	if early := changesFrom(t, s, last, "finality", string(repute.Finalized)); len(added) == 0 || len(early) != 0 {
		t.Fatalf("%d changes, %d of them final", len(added), len(early))
	}
	if _, err := l.db.Pool().Exec(t.Context(), "update chains set finalized_block = $1 where chain_id = $2",
		l.tip.Number,
		l.chain.ID); err != nil {
		t.Fatal(err)
	}
	for _, c := range added {
		if id := next(t, ids); id != c.Cursor {
			t.Errorf("%s, want %s", id, c.Cursor)
		}
	}
}
