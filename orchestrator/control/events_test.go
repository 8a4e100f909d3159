package control_test

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// tail reads a stream's events until one of a kind, or its end.
func tail(t *testing.T, r *bufio.Scanner, until string) (numbers []int, kinds []string) {
	t.Helper()
	for r.Scan() {
		if id, ok := strings.CutPrefix(r.Text(), "id: "); ok {
			n, err := strconv.Atoi(id)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, n)
		}
		if kind, ok := strings.CutPrefix(r.Text(), "event: "); ok {
			if kinds = append(kinds, kind); kind == until {
				return numbers, kinds
			}
		}
	}
	return numbers, kinds
}

func (h *house) stream(run, last string) (*http.Response, *bufio.Scanner) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+"/v1/runs/"+run+"/events", nil)
	ok(h.t, err)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	ok(h.t, err)
	h.t.Cleanup(func() { resp.Body.Close() })
	return resp, bufio.NewScanner(resp.Body)
}

// A reader that is cut off goes on where it was: no event twice, none left out.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	slow := worker{slug: "plain", gate: make(chan struct{})}
	h := newHouse(t, nil, slow)
	task := h.submit(`{"goal":"do it"}`)
	resp, lines := h.stream(task.RunID, "")
	numbers, _ := tail(t, lines, "step.started")
	resp.Body.Close()
	last := numbers[len(numbers)-1]
	close(slow.gate)
	resp, lines = h.stream(task.RunID, strconv.Itoa(last))
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %s", got)
	}
	more, kinds := tail(t, lines, "")
	for i, n := range append(numbers, more...) {
		if n != i+1 {
			t.Fatalf("event %d is number %d: %v, then %v", i+1, n, numbers, more)
		}
	}
	if kinds[len(kinds)-1] != "run.finished" {
		t.Errorf("the stream ended with %v", kinds)
	}
	resp, _ = h.stream(task.RunID, strconv.Itoa(more[len(more)-1]))
	if resp.StatusCode != http.StatusNoContent {
		t.Errorf("with nothing left to say: %d", resp.StatusCode)
	}
	resp, _ = h.stream(task.RunID, "yesterday")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a wrong number: %d", resp.StatusCode)
	}
}

// One caller follows no more than so many runs, and gets the place back.
func TestStreamsAreLimited(t *testing.T) {
	t.Parallel()
	slow := worker{slug: "plain", gate: make(chan struct{})}
	done := make(chan struct{})
	h := newHouse(t, func(o *options) { o.Streams, o.Done = 2, done }, slow)
	t.Cleanup(func() { close(slow.gate) })
	task := h.submit(`{"goal":"do it"}`)
	first, lines := h.stream(task.RunID, "")
	tail(t, lines, "task.added")
	_, second := h.stream(task.RunID, "")
	tail(t, second, "task.added")
	if third, _ := h.stream(task.RunID, ""); third.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a third stream: %d", third.StatusCode)
	}
	first.Body.Close()
	h.until("the place is free", func() bool {
		again, _ := h.stream(task.RunID, "")
		defer again.Body.Close()
		return again.StatusCode == http.StatusOK
	})
	close(done)
	if _, kinds := tail(t, second, "run.finished"); len(kinds) > 0 && kinds[len(kinds)-1] == "run.finished" {
		t.Error("the run ended")
	}
}
