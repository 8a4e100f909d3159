package indexer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// connError is a request that got no HTTP answer.
type connError struct {
	err     error
	timeout bool
}

// Error is the cause's: the request's URL may hold a key.
func (e *connError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *connError) Unwrap() error { return e.err }

// answerError is an answer that contradicts itself or the question.
type answerError struct{ what string }

// Error names the contradiction.
func (e *answerError) Error() string { return "answer does not hold together: " + e.what }

// IsTransient tells failures that waiting may cure and a shorter range does
// not: no connection, rate limits, a node behind its own head. Everything else,
// timeouts and truncated answers included, is taken for a range too large.
func IsTransient(err error) bool {
	var conn *connError
	var network *net.OpError
	var status rpc.HTTPError
	var node *nodeError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &conn):
		return !conn.timeout
	case errors.As(err, &network):
		return !network.Timeout()
	case errors.Is(err, errNoBlock), errors.Is(err, context.Canceled), errors.Is(err, rpc.ErrClientQuit):
		return true
	case errors.As(err, &status):
		return transientText(string(status.Body)) || transientStatus(status.StatusCode)
	case errors.As(err, &node):
		return transientText(node.cause.Error())
	}
	return transientText(err.Error())
}

func transientStatus(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// transientText knows the words of rate limits and of nodes that lag. Codes
// decide nothing: providers give each of them several meanings.
func transientText(s string) bool {
	s = strings.ToLower(s)
	for _, words := range []string{"rate limit", "rate-limit", "too many requests", "compute units", "credits limited",
		"request rate", "throttle", "quota", "beyond current head block", "after last accepted block",
		"is out of range", "could not be found", "header not found", "unknown block", "method not found"} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}

// limitTransport bounds the size of every answer.
type limitTransport struct {
	next http.RoundTripper
	max  int64
}

// RoundTrip passes the request on.
func (t limitTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: t.max, max: t.max}
	}
	return resp, err
}

type limitedBody struct {
	io.ReadCloser
	left, max int64
}

// Read fails once more than the limit was read.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("answer larger than %d bytes", b.max)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}
