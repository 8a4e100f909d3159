package orchestrator_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"repute/orchestrator"
	"repute/orchestrator/outbound"
	"repute/orchestrator/standard"
)

// nameless is a network without names, whose resolver is at an address that agents must not learn.
type nameless struct{}

// RoundTrip fails as a lookup does.
func (nameless) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: r.URL.Hostname(),
		Server: "10.9.8.7:53", IsNotFound: true}}
}

// TestResolverIsNotNamed keeps the address of this machine's resolver from agents.
func TestResolverIsNotNamed(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	agent := newWorker("reader")
	var told error
	agent.do = func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		_, told = c.HTTP(ctx, outbound.HTTPRequest{Method: http.MethodGet, URL: "https://page.example/a"})
		return json.RawMessage(`1`), nil
	}
	h.start(orchestrator.Options{Lenient: true, HTTP: &http.Client{Transport: nameless{}},
		Modules: []orchestrator.Module{agent}})
	h.ended(h.submit(standard.Request{Coordinator: "reader"}))
	if told == nil || strings.Contains(told.Error(), "10.9.8.7") ||
		!strings.Contains(told.Error(), "page.example: the name cannot be resolved") {
		t.Errorf("the agent is told %v", told)
	}
}
