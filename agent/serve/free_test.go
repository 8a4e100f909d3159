package serve_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"repute/agent"
	"repute/internal/pgtest"
)

// TestFree: a free capability is run, its answer signed over task and result, and all is stored.
func TestFree(t *testing.T) {
	t.Parallel()
	h := &echo{}
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{service(t, "echo", h, nil, nil)}})
	got := s.send(t, "echo", `{"text":"hello"}`, nil)
	if got.status != http.StatusOK || got.body != `{"run":1,"text":{"text":"hello"}}` {
		t.Fatalf("%+v", got)
	}
	task, err := s.router.Service("echo").TaskHash("42", json.RawMessage(`{ "text": "hello" }`))
	ok(t, err)
	if got.signed.TaskHash != task || got.header.Get("X-Agent-ID") != "42" ||
		got.header.Get("X-Agent-Version") != "1.2.3" {
		t.Errorf("%+v", got.header)
	}
	if got := s.send(t, "echo", `{"txt":"hello"}`, nil); got.status != http.StatusBadRequest ||
		!strings.Contains(got.body, `"error":"invalid"`) || !strings.Contains(got.body, `"message":`) {
		t.Errorf("%+v", got)
	}
	if got := s.send(t, "other", `{}`, nil); got.status != http.StatusNotFound {
		t.Errorf("%+v", got)
	}
}

// TestSecrets: what a handler says of its failure is in no answer.
func TestSecrets(t *testing.T) {
	t.Parallel()
	h := &echo{fail: errors.New("password hunter2 at /root/secret")}
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{service(t, "echo", h, nil, nil)}})
	got := s.send(t, "echo", `{"text":"hello"}`, nil)
	if got.status != http.StatusInternalServerError || strings.Contains(got.body, "hunter2") ||
		strings.Contains(got.body, "root") {
		t.Errorf("%+v", got)
	}
	h.fail, h.out = nil, `["hunter2"]`
	got = s.send(t, "echo", `{"text":"hello"}`, nil)
	if got.status != http.StatusInternalServerError || strings.Contains(got.body, "hunter2") {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"/health", "/health/ready", "/healthz", "/metrics", "/openapi.json",
		"/agent/42/receipts",
		"/agents/31337:42/receipts", "/.well-known/agent-registration.json", "/.well-known/agent-card.json"} {
		if got := s.ask(t, http.MethodGet, path, "", nil); got.status != http.StatusOK ||
			strings.Contains(got.body, agentKey) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
