package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"repute/api"
	"repute/internal/httpapi"
	"repute/internal/pgtest"

	"github.com/prometheus/client_golang/prometheus"
)

// safeBuffer takes a log from several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	var log safeBuffer
	s := serve(t, api.Options{DB: open(t, nowhere)}, httpapi.ServerOptions{
		Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	get(t, s, "/agents/8453:7?at=SECRETQUERY", "Authorization", "Bearer SECRETHEADER", "X-Request-Id", "abc-1")
	get(t, s, "/healthz")
	waitFor(t, "the access log", func() bool { return strings.Contains(log.String(), `"msg":"request"`) })
	text := log.String()
	if strings.Contains(text, "SECRET") || strings.Contains(text, "healthz") {
		t.Errorf("log: %s", text)
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if line["route"] != "/agents/{id}" || line["status"] != 400.0 || line["requestId"] != "abc-1" ||
		line["ip"] != "127.0.0.1" {
		t.Errorf("%v", line)
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)})
	for given, kept := range map[string]bool{"abc-1.X_2": true, "": false, "a b": false, "a\"b": false,
		strings.Repeat("x", 65): false} {
		got := get(t, s, "/healthz", "X-Request-Id", given).header.Get("X-Request-Id")
		if (got == given) != kept || got == "" {
			t.Errorf("%q became %q", given, got)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := serve(t, api.Options{DB: open(t, nowhere)}, httpapi.ServerOptions{Registry: registry})
	get(t, s, "/agents/8453:7")
	get(t, s, "/agents/1/2/feedback")
	get(t, s, "/no/such/route")
	do(t, s, "BREW", "/agents", nil)
	text := string(get(t, s, "/metrics").body)
	for _, want := range []string{
		`repute_http_requests_total{method="GET",route="/agents/{id}",status="503"} 1`,
		`repute_http_requests_total{method="GET",route="/agents/{id}/feedback",status="503"} 1`,
		`repute_http_requests_total{method="GET",route="unmatched",status="404"} 1`,
		`repute_http_request_duration_seconds_count{method="GET",route="/agents/{id}"} 1`,
		`repute_http_requests_in_flight 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "BREW") || strings.Contains(text, "such") {
		t.Errorf("callers can grow the metrics:\n%s", text)
	}
	if _, err := httpapi.NewServer(httpapi.ServerOptions{Registry: registry}); err == nil {
		t.Error("two servers on one registry")
	}
}

func TestCORSAndGzip(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)})
	r := get(t, s, "/openapi.json", "Origin", "https://dash.example", "Accept-Encoding", "gzip")
	if r.header.Get("Access-Control-Allow-Origin") != "*" || r.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%v", r.header)
	}
	if r.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v", r.header)
	}
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(z); err != nil || !json.Valid(body) {
		t.Errorf("%v", err)
	}
	preflight := do(t, s, http.MethodOptions, "/graphql", nil, "Origin", "https://dash.example",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
	if preflight.status != http.StatusNoContent ||
		!strings.Contains(preflight.header.Get("Access-Control-Allow-Methods"), "POST") ||
		!strings.EqualFold(preflight.header.Get("Access-Control-Allow-Headers"), "content-type") {
		t.Errorf("%d %v", preflight.status, preflight.header)
	}
	if small := get(t, s, "/healthz", "Accept-Encoding", "gzip"); small.header.Get("Content-Encoding") != "" {
		t.Errorf("%v", small.header)
	}
}

// TestTimeout: a request does not outlive its deadline, and the answer says so.
func TestTimeout(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	populate(t, db)
	s := serve(t, api.Options{DB: db}, httpapi.ServerOptions{Limits: httpapi.Limits{Timeout: time.Nanosecond}})
	r := get(t, s, "/agents")
	if b := problemOf(t, r); b.Status != 503 || b.Code != "timeout" || r.header.Get("Retry-After") == "" {
		t.Errorf("%+v", b)
	}
}

// TestJSONIsNotAPage: an answer that echoes the caller is still no page.
func TestJSONIsNotAPage(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)})
	for _, path := range []string{"/agents?%3Cscript%3E=1", "/agents?owner=%3Cscript%3E", "/%3Cscript%3E",
		"/graphql?query=%7B%3Cscript%3E%7D"} {
		r := get(t, s, path, "Accept", "text/html")
		if ct := r.header.Get("Content-Type"); !strings.Contains(ct, "json") ||
			r.header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}

// TestParametersNobodyReads are ignored where docs/reference/api.md says so: checks of health come from
// programs that add their own.
func TestParametersNobodyReads(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Options{DB: open(t, nowhere)})
	for _, path := range []string{"/healthz", "/metrics", "/docs", "/openapi.json", "/schema.graphql"} {
		if r := get(t, s, path+"?x=1"); r.status != 200 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := get(t, s, "/chains?x=1"); r.status != 400 {
		t.Errorf("/chains: %d", r.status)
	}
	docs, err := os.ReadFile("../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(docs), "`/healthz`, `/readyz` and `/metrics` ignore parameters") {
		t.Error("docs/reference/api.md does not say which paths ignore parameters")
	}
}
