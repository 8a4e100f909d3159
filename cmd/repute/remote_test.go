package main

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"repute"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/orchestrator/control"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// The commands ask an orchestrator over HTTP as they ask a database.
func TestTaskCommandsElsewhere(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	manifest, err := json.Marshal(standard.Manifest{Schema: standard.ManifestSchema, Name: "Gone", Slug: "gone",
		Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := rundb.SaveModule(t.Context(), db, repute.Module{Slug: "gone", Manifest: manifest}); err != nil {
		t.Fatal(err)
	}
	client, err := tasks.NewClient(db)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse([]byte("version: \"1\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	on, err := httpapi.NewServer(httpapi.ServerOptions{Tokens: map[string]string{"ann": "a-token-that-is-long-enough"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := control.New(control.Options{Server: on, DB: db, Client: client,
		Policy: func() *policy.Policy { return p }}); err != nil {
		t.Fatal(err)
	}
	routes, err := on.Handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, out, says := tool(t, append(args, "--orchestrator", server.URL)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s %s", args, code, out, says)
		}
		return out, says
	}
	const token = "--token=a-token-that-is-long-enough"
	if out, _ := run(0, "agent", "list"); !strings.Contains(out, "gone") {
		t.Errorf("agents: %s", out)
	}
	if _, says := run(2, "task", "submit", "do it", "--coordinator", "gone"); !strings.Contains(says, "REPUTE_TOKEN") {
		t.Errorf("without a token: %s", says)
	}
	if _, says := run(2, "task", "submit", " ", "--coordinator", "gone", token); !strings.Contains(says, "goal") {
		t.Errorf("without a goal: %s", says)
	}
	out, _ := run(0, "task", "submit", "do it", "--coordinator", "gone", token)
	ids := strings.Fields(out)
	task, root := ids[1], ids[3]
	if out, _ := run(0, "run", "show", root); !strings.Contains(out, "pending") {
		t.Errorf("run: %s", out)
	}
	run(2, "task", "approve", task, token)
	work(t, db)
	if out, says := run(1, "task", "watch", task); !strings.Contains(out, "run.finished") ||
		!strings.Contains(says, "gone") {
		t.Errorf("watch: %s %s", out, says)
	}
	run(0, "task", "retry", task, token)
	run(1, "task", "watch", task, "--json")
	run(2, "task", "cancel", task, token)
	run(1, "task", "watch", "none")
}
