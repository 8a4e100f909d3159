package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"repute"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// The commands ask, decide and show over the database alone.
func TestTaskCommands(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db, err := store.Open(t.Context(), url, store.Options{})
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
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, out, says := tool(t, append(args, "--database-url", url)...)
		if code != want {
			t.Fatalf("%v: exit code %d: %s %s", args, code, out, says)
		}
		return out, says
	}
	if out, _ := run(0, "agent", "list"); !strings.Contains(out, "gone") {
		t.Errorf("agents: %s", out)
	}
	out, _ := run(0, "task", "submit", "do it", "--coordinator", "gone", "--key", "once", "--min-reputation", "10")
	again, _ := run(0, "task", "submit", "do it", "--coordinator", "gone", "--key", "once", "--min-reputation", "10")
	if out != again {
		t.Errorf("the same key made %s and %s", out, again)
	}
	ids := strings.Fields(out)
	task, root := ids[1], ids[3]
	if out, _ := run(0, "task", "submit", "do it", "--coordinator", "gone", "--key", "once", "--min-reputation", "10",
		"--json"); out != `{"kind":"task","taskId":"`+task+`","runId":"`+root+"\"}\n" {
		t.Errorf("as JSON: %s", out)
	}
	if out, _ := run(0, "run", "show", root); !strings.Contains(out, "pending") {
		t.Errorf("run: %s", out)
	}
	if _, says := run(2, "task", "retry", task, "--from", "nowhere"); !strings.Contains(says, "from") {
		t.Errorf("retry says %s", says)
	}
	run(2, "task", "approve", task)
	work(t, db)
	if out, says := run(1, "task", "watch", task); !strings.Contains(out, "run.finished") ||
		!strings.Contains(says, "gone") {
		t.Errorf("watch: %s %s", out, says)
	}
	if out, _ := run(0, "task", "retry", task); out == "" {
		t.Error("retry says nothing")
	}
	run(1, "task", "watch", task, "--json")
	if out, _ := run(0, "run", "show", root, "--json"); !strings.Contains(out, `"attempt": 2`) {
		t.Errorf("run: %s", out)
	}
	if _, says := run(1, "run", "show", root, "--verify-gate"); !strings.Contains(says, "trust decision") {
		t.Errorf("gate of a run that has none: %s", says)
	}
	run(2, "task", "cancel", task)
	if _, says := run(1, "task", "watch", "none"); !strings.Contains(says, "does not exist") {
		t.Errorf("a task that there is not: %s", says)
	}
	if out, _ := run(0, "run", "show", task); !strings.Contains(out, root) {
		t.Errorf("run of a task: %s", out)
	}
	run(2, "agent", "register", "faraway", "ftp://x.example")
}

// Every member of a task's threshold and budget has its flag.
func TestTaskFlags(t *testing.T) {
	t.Parallel()
	var asked control.TaskRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	mustRun(t, "task", "submit", "x", "--orchestrator", server.URL, "--min-reputation", "-5", "--min-trust-score",
		"0.5",
		"--min-tier", "2", "--gate", "service,identity",
		"--require-identity", "--require-registration", "--require-validation", "--verified", "--max-steps", "1",
		"--max-tool-calls", "2",
		"--max-runtime-ms", "3", "--max-writes", "4",
		"--max-gas", "5", "--max-payment", "1", "--max-tokens", "8", "--max-cost", "2", "--value-at-risk", "6", "--tag",
		"a", "--key", "k", "--input", "7")
	for _, v := range []reflect.Value{reflect.ValueOf(asked.Threshold), reflect.ValueOf(asked.Budget),
		reflect.ValueOf(asked.Terms)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s has no flag", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}

// work runs an engine that has no agents.
func work(t *testing.T, db *store.DB) {
	t.Helper()
	p, err := policy.Parse([]byte("version: \"1\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := orchestrator.New(db, orchestrator.Options{Policy: func() *policy.Policy { return p }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
}
