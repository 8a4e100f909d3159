package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"repute"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/policy"
	"repute/store"
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
	manifest, err := json.Marshal(orchestrator.Manifest{Schema: orchestrator.ManifestSchema, Name: "Gone", Slug: "gone", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.SaveModule(t.Context(), repute.Module{Slug: "gone", Manifest: manifest}); err != nil {
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
	if out, _ := run(0, "run", "show", root); !strings.Contains(out, "pending") {
		t.Errorf("run: %s", out)
	}
	if _, says := run(2, "task", "retry", task, "--from", "nowhere"); !strings.Contains(says, "from") {
		t.Errorf("retry says %s", says)
	}
	run(2, "task", "approve", task)
	work(t, db)
	if out, says := run(1, "task", "watch", task); !strings.Contains(out, "run.finished") || !strings.Contains(says, "gone") {
		t.Errorf("watch: %s %s", out, says)
	}
	run(0, "task", "retry", task)
	run(1, "task", "watch", task, "--json")
	if out, _ := run(0, "run", "show", root, "--json"); !strings.Contains(out, `"attempt": 2`) {
		t.Errorf("run: %s", out)
	}
	if _, says := run(1, "run", "show", root, "--verify-gate"); !strings.Contains(says, "trust decision") {
		t.Errorf("gate of a run that has none: %s", says)
	}
	run(2, "task", "cancel", task)
	run(1, "task", "watch", "none")
	run(2, "agent", "register", "faraway", "ftp://x.example")
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
