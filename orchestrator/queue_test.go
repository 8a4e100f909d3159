package orchestrator_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"repute/api"
	"repute/internal/httpapi"
	"repute/orchestrator"
	"repute/orchestrator/standard"
)

// The operator's pages show the queue of runs and its jobs to who has the token alone.
func TestOperatorSeesTheRunsQueue(t *testing.T) {
	t.Parallel()
	const token = "correct-horse-battery-staple"
	h, _ := newHouse(t)
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{newWorker("plain")}})
	_, run := h.ended(h.submit(standard.Request{Coordinator: "plain"}))
	server, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{"operator": token}})
	ok(t, err)
	_, err = api.New(api.Options{Server: server, DB: h.db})
	ok(t, err)
	routes, err := server.Handler()
	ok(t, err)
	ask := func(path, token string) (int, string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		routes.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := ask("/admin/jobs/api/queues?limit=20", token); code != http.StatusOK ||
		!strings.Contains(body, `"runs"`) {
		t.Errorf("queues: %d %s", code, body)
	}
	h.until("the job shows as completed", func() bool {
		code, body := ask("/admin/jobs/api/jobs?limit=20&state=completed", token)
		return code == http.StatusOK && strings.Contains(body, `"runs"`)
	})
	if code, body := ask("/admin/jobs/api/jobs?limit=20&state=completed",
		"no-token-of-the-operator"); code != http.StatusUnauthorized || strings.Contains(body, run.ID) {
		t.Errorf("without the token: %d %s", code, body)
	}
}
