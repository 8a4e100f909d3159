package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"repute"
	"repute/internal/httpapi"
)

// guarded answers 200 behind a guard, at a connection's local address.
func guarded(t *testing.T, local string) func(*http.Request) *httptest.ResponseRecorder {
	t.Helper()
	g, err := httpapi.NewGuard(httpapi.GuardOptions{Hosts: []string{"Repute.example", "fd00::1"},
		Origins: []string{"https://app.example:8443/"},
		Public:  func(r *http.Request) bool { return r.URL.Path == "/public" }})
	if err != nil {
		t.Fatal(err)
	}
	at, err := net.ResolveTCPAddr("tcp", local)
	if err != nil {
		t.Fatal(err)
	}
	h := g.Over(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	return func(r *http.Request) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at)))
		return w
	}
}

const (
	onLoopback = "127.0.0.1:8080"
	onNetwork  = "10.0.0.5:8080"
)

// A name that a stranger's DNS may point to this server opens nothing on a loopback
// connection, and nothing private on any other.
func TestGuardKnowsHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		local, host, path string
		status            int
	}{
		{onLoopback, "127.0.0.1:8080", "/v1", 200}, {onLoopback, "LOCALHOST.:1", "/v1", 200},
		{onLoopback, "[::1]:8080", "/v1", 200}, {onLoopback, "127.9.9.9", "/v1", 200},
		{onLoopback, "repute.EXAMPLE:443", "/v1", 200}, {onLoopback, "[fd00::1]", "/v1", 200},
		{onLoopback, "", "/v1", 200},
		{onLoopback, "evil.example", "/v1", 403}, {onLoopback, "evil.example:8080", "/public", 403},
		{onLoopback, "localhost.evil.example", "/v1", 403},
		{onLoopback, "127.0.0.1.evil.example", "/v1", 403}, {onLoopback, "10.0.0.5", "/v1", 403},
		{onLoopback, "repute", "/v1", 403},
		{"[::1]:80", "evil.example", "/v1", 403},
		{onNetwork, "evil.example", "/public", 200}, {onNetwork, "evil.example", "/v1", 403},
		{onNetwork, "10.0.0.5:8080", "/v1", 200},
		{onNetwork, "repute:8080", "/v1", 200}, {onNetwork, "repute.example", "/v1", 200},
		{onNetwork, "localhost:8080", "/v1", 200},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Host = c.host
		w := guarded(t, c.local)(r)
		if w.Code != c.status {
			t.Errorf("%q at %s for %s: status %d, want %d", c.host, c.local, c.path, w.Code, c.status)
		}
		var p httpapi.ErrorBody
		if c.status == 403 && (json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Code != "forbidden" ||
			!strings.Contains(p.Hint, "allowed_hosts")) {
			t.Errorf("%q: %s", c.host, w.Body)
		}
	}
}

// Pages of other sites send no request that changes or reads something private.
func TestGuardKnowsPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, path string
		header       [2]string
		mode         string
		status       int
	}{
		{"POST", "/v1", [2]string{"Origin", "https://evil.example"}, "", 403},
		{"POST", "/v1", [2]string{"Origin", "null"}, "", 403},
		{"POST", "/v1", [2]string{"Origin", "http://localhost:8080"}, "", 200},
		{"POST", "/v1", [2]string{"Origin", "http://localhost:3000"}, "", 403},
		{"POST", "/v1", [2]string{"Origin", "https://app.example:8443"}, "", 200},
		{"DELETE", "/v1", [2]string{"Sec-Fetch-Site", "cross-site"}, "", 403},
		{"PUT", "/v1", [2]string{"Sec-Fetch-Site", "same-origin"}, "", 200},
		{"POST", "/v1", [2]string{}, "", 200},
		{"POST", "/public", [2]string{"Sec-Fetch-Site", "cross-site"}, "cors", 200},
		{"GET", "/v1", [2]string{"Sec-Fetch-Site", "cross-site"}, "no-cors", 403},
		{"GET", "/v1", [2]string{"Sec-Fetch-Site", "same-site"}, "cors", 403},
		{"GET", "/v1", [2]string{"Sec-Fetch-Site", "cross-site"}, "navigate", 200},
		{"GET", "/v1", [2]string{"Sec-Fetch-Site", "none"}, "navigate", 200},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Host = "localhost:8080"
		if c.header[0] != "" {
			r.Header.Set(c.header[0], c.header[1])
		}
		if c.mode != "" {
			r.Header.Set("Sec-Fetch-Mode", c.mode)
		}
		if w := guarded(t, onLoopback)(r); w.Code != c.status || c.status == 403 &&
			!strings.Contains(w.Body.String(), "allowed_hosts") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// What is no host or origin is refused by the key of the configuration.
func TestGuardChecksConfiguration(t *testing.T) {
	t.Parallel()
	for _, h := range []string{"", "https://a.example", "a.example:443", "a b", "user@a.example"} {
		if _, err := httpapi.NewGuard(httpapi.GuardOptions{Hosts: []string{h}}); !errors.Is(err, repute.ErrInvalid) ||
			!strings.Contains(err.Error(), "allowed_hosts") {
			t.Errorf("host %q: %v", h, err)
		}
	}
	for _, o := range []string{"app.example", "ftp://app.example", "https://", "://"} {
		_, err := httpapi.NewGuard(httpapi.GuardOptions{Origins: []string{o}})
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "allowed_hosts") {
			t.Errorf("origin %q: %v", o, err)
		}
	}
}
