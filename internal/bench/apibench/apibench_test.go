package apibench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/internal/bench/harness"
	"repute/internal/pgtest"
	"repute/store"
)

// What is filled in adds up, and can be written on.
func TestFill(t *testing.T) {
	t.Parallel()
	url, ctx := pgtest.New(t), t.Context()
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	d := &harness.Database{Conn: conn, URL: url}
	if err := fill(ctx, d, db, size{agents: 300, ratings: 1000, heavy: 400}); err != nil {
		t.Fatal(err)
	}
	w, err := newWriter(ctx, db, 300)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.write(ctx, 3); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]int64{
		"select count(*) from agents":                              300,
		"select count(*) from feedback":                            1000 + 3*perBlock,
		"select feedback from agents where token_id = 0":           400,
		"select clients from agents where token_id = 0":            134,
		"select sum(feedback)::bigint from agents":                 1000 + 3*perBlock,
		"select sum(n)::bigint from sums":                          1000 + 3*perBlock,
		"select count(*) from events":                              1300 + 3*perBlock,
		"select count(*) from pending":                             0,
		"select cursor_block from chains":                          int64(size{300, 1000, 400}.blocks()) + 3,
		"select count(*) from searchable":                          300,
		"select count(*) from manifests":                           300,
		"select count(*) from manifest_intents":                    900,
		"select sum(began)::bigint from hours where token_id = -1": 1300 + 3*perBlock,
		"select count(*) from feedback f where not exists (select from blocks b where b.number = f.block)": 0,
		"select count(*) from agents where not exists (select from uris u where u.id = uri_id)":            0,
	} {
		if got, err := harness.Value[int64](ctx, d, sql); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", sql, got, want, err)
		}
	}
}

// Loads ask as often as they say, and fail where an answer does.
func TestLoads(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	address := strings.TrimPrefix(s.URL, "http://")
	n, err := throughput(t.Context(), address, "/x", 3, 100*time.Millisecond)
	if err != nil || n <= 0 || asked.Load() == 0 {
		t.Errorf("%v answers a second of %d, %v", n, asked.Load(), err)
	}
	asked.Store(0)
	a, err := paced(t.Context(), address, func(n int) string { return fmt.Sprint("/", n) }, 200, 500*time.Millisecond)
	if n := len(a.times); err != nil || n != int(asked.Load()) || n < 50 || n > 100 {
		t.Errorf("%d times of %d requests, %v", n, asked.Load(), err)
	}
	if _, err := throughput(t.Context(), address, "/fails", 2, time.Minute); err == nil ||
		!strings.Contains(err.Error(), "418") {
		t.Errorf("throughput: %v", err)
	}
}

// A refused request does not end a measurement, but makes it miss every target.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, strings.Repeat("no", 1000))
	}))
	t.Cleanup(s.Close)
	address := strings.TrimPrefix(s.URL, "http://")
	for name, load := range map[string]func() (answers, error){
		"paced": func() (answers, error) {
			return paced(t.Context(), address, func(int) string { return "/" }, 100, 100*time.Millisecond)
		},
		"each": func() (answers, error) {
			return each(t.Context(), address, 3, 0, func(c *conn, _ int) error { _, err := c.get("/"); return err })
		},
	} {
		a, err := load()
		got := timesOf(a)
		if err != nil || got.Count == 0 || got.Refused != got.Count || !strings.Contains(got.Refusal, "418") ||
			got.Median != float64(patience.Milliseconds()) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	s.Close()
	if _, err := each(t.Context(), address, 3, 0,
		func(c *conn, _ int) error { _, err := c.get("/"); return err }); err == nil {
		t.Error("a server that is away is no error")
	}
}
