package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"repute/api"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
)

// TestOutage: Postgres goes away and comes back; answers say so and nothing
// needs a restart.
func TestOutage(t *testing.T) {
	t.Parallel()
	dbURL := pgtest.New(t)
	populate(t, open(t, dbURL))
	proxy := newProxy(t, dbURL)
	s := serve(t, api.Options{DB: open(t, proxy.url)})
	paths := []string{"/agents", "/agents/8453:7", "/agents/8453:7/reputation", "/agents/8453:7/feedback",
		"/agents/8453:7/validations", "/chains", "/status"}
	for _, path := range paths {
		if r := get(t, s, path); r.status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, r.status, r.body)
		}
	}
	proxy.cut(true)
	for _, path := range paths {
		r := get(t, s, path)
		b := problemOf(t, r)
		if b.Status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" ||
			strings.Contains(string(r.body), "127.0.0.1") {
			t.Errorf("%s: %v %s", path, r.header, r.body)
		}
	}
	ready := get(t, s, "/readyz")
	if ready.status != http.StatusServiceUnavailable || !strings.Contains(string(ready.body), "database") ||
		strings.Contains(string(ready.body), "127.0.0.1") {
		t.Errorf("readyz: %d %s", ready.status, ready.body)
	}
	if r := get(t, s, "/healthz"); r.status != http.StatusOK {
		t.Errorf("healthz: %d", r.status)
	}
	proxy.cut(false)
	for _, path := range append(paths, "/readyz") {
		waitFor(t, path+" to come back", func() bool { return get(t, s, path).status == http.StatusOK })
	}
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestReadiness: /readyz says what is missing.
func TestReadiness(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	var rpc error
	s := serve(t, api.Options{DB: db, Ready: func(context.Context) error { return rpc }})
	check := func(status int, says string) {
		t.Helper()
		r := get(t, s, "/readyz")
		if r.status != status || !strings.Contains(string(r.body), says) ||
			r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %s, want %d and %q", r.status, r.body, status, says)
		}
	}
	check(503, "no chain is configured")
	l := newLedger(t, db, 8453)
	check(503, "no chain has been indexed yet")
	l.add(mint(0, addr(1), "")...)
	check(200, `"status":"ok"`)
	rpc = errors.New("no endpoint of chain 8453 answers: https://rpc.example/KEY: timeout")
	check(503, "no endpoint of chain 8453 answers: https://rpc.example")
	if body := get(t, s, "/readyz").body; strings.Contains(string(body), "KEY") {
		t.Errorf("shows a key: %s", body)
	}
}

// TestReadyFunc: what the caller's check does cannot hang or end the process.
func TestReadyFunc(t *testing.T) {
	t.Parallel()
	ready := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	s, l := populated(t, api.Options{Ready: ready},
		httpapi.ServerOptions{Limits: httpapi.Limits{Timeout: 200 * time.Millisecond}})
	if r := get(t, s, "/readyz"); r.status != 503 || !strings.Contains(string(r.body), "did not answer in time") {
		t.Errorf("%d %s", r.status, r.body)
	}
	broken := serve(t, api.Options{DB: l.db, Ready: func(context.Context) error { panic("SECRET") }})
	for range 2 {
		r := get(t, broken, "/readyz")
		if b := problemOf(t, r); b.Status != 500 || b.Code != "internal" || strings.Contains(string(r.body), "SECRET") {
			t.Errorf("%s", r.body)
		}
	}
}

// TestDegraded: a chain in trouble shows in /status without its secrets.
func TestDegraded(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	if err := chaindb.SetError(context.Background(), l.db, 8453, store.Lease{},
		`Post "https://rpc.example/v3/KEY": refused`, true); err != nil {
		t.Fatal(err)
	}
	r := get(t, s, "/status")
	status := as[wire.StatusAnswer](t, r)
	if status.Status != "degraded" || strings.Contains(string(r.body), "KEY") ||
		!strings.Contains(string(r.body), "rpc.example") {
		t.Errorf("%s", r.body)
	}
	if one := as[wire.StatusAnswer](t, get(t, s, "/chains/1/status")); one.Status != "ok" {
		t.Errorf("the other chain: %+v", one)
	}
}
