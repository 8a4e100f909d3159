package httpapi_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
)

// keySource has keys by their text, as a database would.
type keySource struct {
	mu    sync.Mutex
	keys  map[[sha256.Size]byte]httpapi.APIKey
	asked int
	away  bool
}

// Find implements httpapi.KeySource.
func (s *keySource) Find(_ context.Context, hash [sha256.Size]byte) (httpapi.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.away {
		return httpapi.APIKey{}, errors.New("the database is away")
	}
	k, found := s.keys[hash]
	if !found {
		return k, repute.ErrNotFound
	}
	return k, nil
}

const (
	readKey   = httpapi.KeyPrefix + "read"
	exportKey = httpapi.KeyPrefix + "export"
)

func newKeys() *keySource {
	return &keySource{keys: map[[sha256.Size]byte]httpapi.APIKey{
		sha256.Sum256([]byte(readKey)): {Name: "reader", Rate: 1, Scopes: []string{httpapi.ScopeRead}},
		sha256.Sum256([]byte(exportKey)): {Name: "both", Rate: 5,
			Scopes: []string{httpapi.ScopeRead, httpapi.ScopeExport}},
	}}
}

// limitedServer lets an address send two requests, and then one a minute.
func limitedServer(t *testing.T, keys *keySource, log *slog.Logger) http.Handler {
	t.Helper()
	s, err := httpapi.NewServer(httpapi.ServerOptions{Keys: keys, Logger: log,
		Limits: httpapi.Limits{Rate: 1.0 / 60, Burst: 2}})
	if err != nil {
		t.Fatal(err)
	}
	answer := func(c echo.Context) error { return c.String(http.StatusOK, httpapi.CallerOf(c.Request().Context())) }
	s.Get(httpapi.Route{Path: "/read", ID: "read", ContentType: "text/plain"}, answer)
	s.Get(httpapi.Route{Path: "/export/{set}", ID: "export", ContentType: "text/plain"}, answer)
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A key has a limit of its own, which the headers tell; that of the address stays.
func TestKeysHaveTheirOwnLimit(t *testing.T) {
	t.Parallel()
	h := limitedServer(t, newKeys(), slog.New(slog.DiscardHandler))
	for i, want := range []string{`"address";r=1;t=60`, `"address";r=0;t=120`} {
		if w := ask(h, "/read"); w.Code != http.StatusOK || w.Header().Get(httpapi.RateLimit) != want ||
			w.Header().Get(httpapi.RateLimitPolicy) != `"address";q=2;w=120` {
			t.Errorf("request %d: %d %v", i, w.Code, w.Header())
		}
	}
	if w := ask(h, "/read"); w.Code != http.StatusTooManyRequests || w.Header().Get(httpapi.RetryAfter) == "" ||
		!strings.Contains(w.Header().Get(httpapi.RateLimit), "r=0") {
		t.Errorf("above the limit: %d %v", w.Code, w.Header())
	}
	other := limitedServer(t, newKeys(), slog.New(slog.DiscardHandler))
	passed := 0
	for range 30 {
		if w := ask(other, "/read", "X-API-Key", exportKey); w.Code == http.StatusOK {
			passed++
			if !strings.HasPrefix(w.Header().Get(httpapi.RateLimitPolicy), `"key";q=20;w=4`) ||
				w.Body.String() != "key/both" {
				t.Errorf("%v, %s", w.Header(), w.Body)
			}
		}
	}
	if passed < 20 || passed > 25 {
		t.Errorf("%d of 30 pass at once, want about 20", passed)
	}
}

func TestKeysAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, key string
		status    int
		says      string
	}{
		"unknown":           {"/read", httpapi.KeyPrefix + "unknown", http.StatusUnauthorized, "not known"},
		"without the scope": {"/export/agents", readKey, http.StatusForbidden, httpapi.ScopeExport},
		"with the scope":    {"/export/agents", exportKey, http.StatusOK, "key/both"},
	} {
		h := limitedServer(t, newKeys(), slog.New(slog.DiscardHandler))
		if w := ask(h, c.path, "Authorization", "Bearer "+c.key); w.Code != c.status ||
			!strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// Keys that do not exist are asked for as often as their address may send requests, and no more.
func TestGuessedKeysAreLimited(t *testing.T) {
	t.Parallel()
	keys := newKeys()
	h := limitedServer(t, keys, slog.New(slog.DiscardHandler))
	for i := range 50 {
		ask(h, "/read", "X-API-Key", fmt.Sprint(httpapi.KeyPrefix, i))
	}
	if keys.asked != 2 {
		t.Errorf("the source was asked %d times, want 2", keys.asked)
	}
}

// While keys cannot be read their callers count by address, and no key is ever logged.
func TestKeysWithoutSource(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	keys := newKeys()
	keys.away = true
	h := limitedServer(t, keys, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if w := ask(h, "/read", "X-API-Key", exportKey); w.Code != http.StatusOK ||
		!strings.HasPrefix(w.Header().Get(httpapi.RateLimit), `"address"`) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	keys.away = false
	ask(limitedServer(t, keys, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		"/read", "X-API-Key", exportKey)
	if text := log.String(); strings.Contains(text, exportKey) || !strings.Contains(text, "caller=key/both") {
		t.Errorf("the log is\n%s", text)
	}
}
