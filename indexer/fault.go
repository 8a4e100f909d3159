package indexer

import (
	"context"
	"errors"
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
	var said *rpcRefusal
	var page *statusError
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
	case errors.As(err, &said):
		return transientText(said.Message+" "+string(said.Data)) || said.status == http.StatusTooManyRequests
	case errors.As(err, &page):
		return transientText(page.body) || transientStatus(page.code)
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
