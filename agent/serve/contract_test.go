package serve_test

import (
	"flag"
	"net/http"
	"os"
	"testing"

	"repute/agent"
	"repute/internal/pgtest"
)

var update = flag.Bool("update", false, "write the contract instead of comparing it")

// TestContract: the OpenAPI document of an agent is docs/reference/agent.openapi.json.
func TestContract(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.New(t), agent.Options{Services: []*agent.Service{service(t, "echo", &echo{}, nil, nil)}})
	got := s.ask(t, http.MethodGet, "/openapi.json", "", nil)
	const page = "../../docs/reference/agent.openapi.json"
	if *update {
		ok(t, os.WriteFile(page, []byte(got.body), 0o644))
	}
	want, err := os.ReadFile(page)
	if err != nil || string(want) != got.body {
		t.Errorf("docs/reference/agent.openapi.json differs (%v): go test ./agent/serve -run Contract -update", err)
	}
}
