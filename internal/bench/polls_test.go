package bench

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Requests for the newest block are polls, others are not, and the node answers all.
func TestPollsAreCounted(t *testing.T) {
	t.Parallel()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte("answer to "), body...))
	}))
	t.Cleanup(node.Close)
	var polls atomic.Int64
	url, stop, err := countPolls(node.URL, &polls)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`[{"params":["latest",false]},{"params":["safe",false]}]`, `{"params":["0x1",false]}`,
		`{"params":["latest",false]}`} {
		res, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || string(got) != "answer to "+body {
			t.Errorf("%s, %v", got, err)
		}
	}
	if n := polls.Load(); n != 2 {
		t.Errorf("%d polls, want 2", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// What polling must reach is a target of its own, which a slow or eager poller misses.
func TestPollingTargets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		median, perBlock float64
		missed           int
	}{{250, 2, 0}, {251, 2, 1}, {250, 2.1, 1}, {500, 20, 2}} {
		missed := 0
		for _, target := range (&FollowMeasurements{HTTP: Polling{Visible: Delays{Median: tt.median},
			PerBlock: tt.perBlock}}).targets() {
			if !target.OK {
				missed++
			}
		}
		if missed != tt.missed {
			t.Errorf("a median of %v ms at %v polls per block misses %d targets, want %d", tt.median, tt.perBlock,
				missed,
				tt.missed)
		}
	}
}
