package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"repute"
)

// Direct returns a client that returns redirects instead of following them, as payments and secrets must not reach
// another host than the one that was named; nil of nil.
func Direct(c *http.Client) *http.Client {
	if c == nil {
		return nil
	}
	own := *c
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// HTTPRequest is a request to the world outside.
type HTTPRequest struct {
	Method string      `json:"method"` // empty: GET
	URL    string      `json:"url"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

// HTTPResponse is its answer.
type HTTPResponse struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"` // those that tell of the answer: no cookies, no credentials
	Body   []byte      `json:"body"`   // at most 1 MiB; more is an error
	// At is when the request was sent, ElapsedMS how long the whole answer took to come,
	// rounded up.
	// After a crash they are those of the call that was made.
	At        time.Time `json:"at"`
	ElapsedMS int64     `json:"elapsedMs"`
}

// MaxAnswer bounds the body of an answer, in bytes.
const MaxAnswer = 1 << 20

// Verb is the request's method, GET when none is given.
func (q *HTTPRequest) Verb() string {
	if q.Method == "" {
		return http.MethodGet
	}
	return q.Method
}

// Send makes one HTTP request with a client, which MUST guard what may be reached. The idempotency key is the same
// whenever the same call is repeated after a crash, so that the receiver can tell.
func (q *HTTPRequest) Send(ctx context.Context, client *http.Client, key string) (out HTTPResponse, err error) {
	if client == nil {
		return out, &repute.MissingError{What: "HTTP", Why: "is not configured"}
	}
	req, err := http.NewRequestWithContext(ctx, q.Verb(), q.URL, bytes.NewReader(q.Body))
	if err != nil {
		return out, repute.Invalid("url", err.Error(), "a request that can be sent")
	}
	for name, values := range q.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Idempotency-Key", key)
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return out, fmt.Errorf("%w: %w", repute.ErrUnavailable, Reason(req, err))
	}
	defer resp.Body.Close()
	out = HTTPResponse{Status: resp.StatusCode, Header: Harmless(resp.Header), At: began.UTC()}
	out.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	out.ElapsedMS = (time.Since(began) + time.Millisecond - 1).Milliseconds()
	if err == nil && len(out.Body) > MaxAnswer { // no limit of the run's: the agent may go on
		return HTTPResponse{}, repute.Invalid("answer", fmt.Sprintf("has more than %d bytes", MaxAnswer),
			"a shorter one")
	}
	return out, err
}

// Reason is why a request was not answered, as an agent may see it.
func Reason(req *http.Request, err error) error {
	var told *url.Error
	if errors.As(err, &told) { // it quotes the address, whose query may hold secrets
		err = fmt.Errorf("%s: %w", req.URL.Host, told.Err)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) { // it names this machine's resolver
		err = fmt.Errorf("%s: the name cannot be resolved", req.URL.Host)
	}
	return err
}

// Harmless are the headers that an agent gets and the receipt keeps.
func Harmless(from http.Header) http.Header {
	out := http.Header{}
	for _, name := range []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
		"Content-Length", "Content-Type", "Date", "Etag", "Expires",
		"Last-Modified", "Link", "Location", "Retry-After", "Payment-Required", "Payment-Response",
		"X-Payment-Response"} {
		if values := from.Values(name); len(values) > 0 {
			out[name] = values
		}
	}
	return out
}
