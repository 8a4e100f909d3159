package resolver_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"repute/resolver"
)

// TestHeaderTimeout waits for as long as it is told for an answer to begin.
func TestHeaderTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(release) })
	u, err := url.Parse(silent.URL)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(d time.Duration) error {
		g := resolver.NewGuard(resolver.GuardOptions{AllowHosts: []string{u.Host}, HeaderTimeout: d})
		resp, err := g.Client(time.Minute).Get(silent.URL)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := ask(20 * time.Millisecond); err == nil {
		t.Error("waited for longer")
	}
}
