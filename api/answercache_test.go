package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
)

// cached serves an index whose answers are kept in a Redis.
func cached(t *testing.T, db *store.DB, server redisServer) *httptest.Server {
	t.Helper()
	return serve(t, api.Options{DB: db, CacheName: "test"}, httpapi.ServerOptions{Redis: server.patient(t),
		Limits: httpapi.Limits{Rate: -1}})
}

const cacheHit = "repute; hit"

// Processes share answers, and the caller's ETag still counts.
func TestAnswersAreShared(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	db := open(t, pgtest.New(t))
	newLedger(t, db, 8453).add(mint(0, addr(1), "https://a.example")...)
	one, two := cached(t, db, redis), cached(t, db, redis)
	host := []string{"Accept", "application/json"}
	waitFor(t, "a shared answer", func() bool {
		first := get(t, one, "/agents/8453:0", host...)
		again := get(t, two, "/agents/8453:0", host...)
		return again.header.Get("Cache-Status") == cacheHit && string(again.body) == string(first.body) &&
			again.header.Get("ETag") == first.header.Get("ETag") &&
			again.header.Get("Content-Type") == first.header.Get("Content-Type")
	})
	waitFor(t, "a shared 304", func() bool {
		first := get(t, one, "/agents/8453:0", host...)
		again := get(t, one, "/agents/8453:0", append(host, "If-None-Match", first.header.Get("ETag"))...)
		return again.status == http.StatusNotModified && again.header.Get("Cache-Status") == cacheHit &&
			len(again.body) == 0
	})
	for _, path := range []string{"/agents/8453:9", "/healthz",
		"/openapi.json"} { // failures, and what is not of the index
		get(t, one, path)
		if again := get(t, one, path); again.header.Get("Cache-Status") != "" {
			t.Errorf("%s is kept", path)
		}
	}
	if again := get(t, one, "/agents/8453:0", "Authorization",
		"Bearer some-token-of-somebody"); again.header.Get("Cache-Status") != "" {
		t.Error("a caller with a token gets a shared answer")
	}
}

// No change is hidden for longer than a second after it was stored: an answer that begins later than that shows it,
// whatever was asked and written before.
func TestAnswersAreFresh(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, 8453)
	l.add(mint(0, addr(1), "https://a.example/0")...)
	s := cached(t, db, redis)
	written, hits := 0, 0
	stored := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				written++
				l.add(repute.URIUpdated{TokenID: token(0), URI: fmt.Sprint("https://a.example/", written),
					UpdatedBy: addr(1)})
				stored = time.Now()
			case 1:
				time.Sleep(time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Millisecond)
			case 2:
				began := time.Now()
				r := get(l.t, s, "/agents/8453:0")
				if r.header.Get("Cache-Status") == cacheHit {
					hits++
				}
				if shown := as[wire.AgentAnswer](l.t, r); shown.URI != fmt.Sprint("https://a.example/", written) &&
					began.Sub(stored) > time.Second {
					t.Fatalf("%s after %s, want %d", shown.URI, began.Sub(stored), written)
				}
			}
		}
	})
	if hits == 0 {
		t.Error("no answer came from the cache")
	}
}

// Under load a Redis that freezes and then dies costs no answer.
func TestDeadRedisCostsNoAnswer(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	db := open(t, pgtest.New(t))
	newLedger(t, db, 8453).add(mint(0, addr(1), "https://a.example")...)
	s := serve(t, api.Options{DB: db, CacheName: "test"}, httpapi.ServerOptions{Redis: server.client(t),
		Limits: httpapi.Limits{Rate: -1}})
	var asked, failed atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if r := get(t, s, "/agents/8453:0"); r.status != http.StatusOK {
					failed.Add(1)
				}
				asked.Add(1)
			}
		})
	}
	enough := func(n int64) {
		from := asked.Load()
		waitFor(t, "answers", func() bool { return asked.Load() > from+n })
	}
	enough(50)
	if err := server.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	enough(50)
	server.stop()
	enough(50)
	stop()
	callers.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), asked.Load())
	}
}
