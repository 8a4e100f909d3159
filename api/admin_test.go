package api_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"repute/api"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
)

const adminToken = "correct-horse-battery-staple"

func basic(t testing.TB, password string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("anybody", password)
	return r.Header.Get("Authorization")
}

func TestAdminNeedsToken(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := serve(t, api.Options{DB: open(t, pgtest.New(t))},
		httpapi.ServerOptions{Tokens: map[string]string{"operator": adminToken},
			Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, path := range []string{"/admin/jobs", "/admin/jobs/", "/admin/jobs/api/jobs?state=running",
		"/admin/jobs/api/queues"} {
		for _, header := range []string{"", "Bearer " + adminToken + "x", "Bearer", basic(t, "nothing")} {
			r := get(t, s, path, "Authorization", header)
			if b := problemOf(t, r); b.Status != http.StatusUnauthorized || b.Code != "unauthorized" ||
				len(r.header.Values("WWW-Authenticate")) != 2 {
				t.Errorf("%s with %q: %+v %v", path, header, b, r.header)
			}
		}
		for _, header := range []string{"Bearer " + adminToken, "bearer  " + adminToken, basic(t, adminToken)} {
			r := get(t, s, path, "Authorization", header)
			if r.status != http.StatusOK || r.header.Get("Cache-Control") != "no-store" ||
				!strings.Contains(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%s with %q: %d %v", path, header, r.status, r.header)
			}
		}
	}
	if page := get(t, s, "/admin/jobs/", "Authorization", basic(t, adminToken)); !strings.Contains(string(page.body),
		`src="/admin/jobs/`) {
		t.Errorf("the page: %s", page.body)
	}
	if icon := get(t, s, "/admin/jobs/icon.svg", "Authorization", basic(t, adminToken)); icon.status != http.StatusOK ||
		!slices.Equal(icon.header.Values("Content-Type"), []string{"image/svg+xml"}) {
		t.Errorf("the icon: %d %v", icon.status, icon.header)
	}
	s.Close() // waits for the log's last line
	if strings.Contains(log.String(), adminToken) || strings.Contains(log.String(), basic(t, adminToken)) {
		t.Error("the log holds the token")
	}
}

// Guessing is slowed down, but locks nobody out who knows the token, perhaps behind
// the same proxy; without a token nobody counts.
func TestAdminLimitsGuesses(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)},
		httpapi.ServerOptions{Tokens: map[string]string{"operator": adminToken},
			Limits: httpapi.Limits{Rate: -1}})
	for range 30 {
		if r := get(t, s, "/admin/jobs/"); r.status != http.StatusUnauthorized {
			t.Fatalf("without a token: %d", r.status)
		}
	}
	limited := 0
	for range 30 {
		if r := get(t, s, "/admin/jobs/", "Authorization", "Bearer no"); r.status == http.StatusTooManyRequests &&
			r.header.Get("Retry-After") != "" {
			limited++
		}
	}
	if limited < 15 {
		t.Errorf("%d of 30 guesses were limited", limited)
	}
	if r := get(t, s, "/admin/jobs/", "Authorization", "Bearer "+adminToken); r.status == http.StatusTooManyRequests ||
		r.status == http.StatusUnauthorized {
		t.Errorf("the right token after too many guesses: %d", r.status)
	}
}

func TestAdminIsOffWithoutToken(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)})
	for _, path := range []string{"/admin/jobs", "/admin/jobs/api/jobs"} {
		if b := problemOf(t, get(t, s, path, "Authorization", "Bearer ")); b.Status != http.StatusNotFound {
			t.Errorf("%s: %+v", path, b)
		}
	}
}
