package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"repute/internal/bench/harness"
)

// countPolls serves a node's HTTP endpoint until stop is called, and counts the requests that ask for
// its newest block. A request counts once however many questions its batch has: a provider's limits and
// the pace of polling are of requests.
func countPolls(node string, polls *atomic.Int64) (address string, stop func() error, err error) {
	target, err := url.Parse(node)
	if err != nil {
		return "", nil, fmt.Errorf("count polls: %w", err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	return harness.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "the request was cut short", http.StatusBadRequest)
			return
		}
		if bytes.Contains(body, []byte(`"latest"`)) {
			polls.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
}
