package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// pollCounter stands before a node's HTTP endpoint and counts the requests that ask for its
// newest block.
type pollCounter struct {
	URL    string
	polls  atomic.Int64
	server *http.Server
	ended  chan error
}

// countPolls serves until close.
func countPolls(node string) (*pollCounter, error) {
	target, err := url.Parse(node)
	if err != nil {
		return nil, fmt.Errorf("count polls: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("count polls: %w", err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	c := &pollCounter{URL: "http://" + l.Addr().String(), ended: make(chan error, 1)}
	c.server = &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, "the request was cut short", http.StatusBadRequest)
				return
			}
			if bytes.Contains(body, []byte(`"latest"`)) {
				c.polls.Add(1)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(w, r)
		})}
	go func() { c.ended <- c.server.Serve(l) }()
	return c, nil
}

func (c *pollCounter) close() error {
	err := c.server.Close()
	if e := <-c.ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}
