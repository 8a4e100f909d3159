package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"repute/internal/pgtest"
	"repute/orchestrator/remote"
)

// What agent new writes compiles, passes its own test, and does a task once it runs. The
// process that answers is another one than that which runs tasks.
func TestAgentNew(t *testing.T) {
	t.Parallel()
	listen, database := freeAddress(t), pgtest.New(t)
	goAgent, pyAgent := freeAddress(t), freeAddress(t)
	file, rules := filepath.Join(t.TempDir(), "repute.yaml"), filepath.Join(t.TempDir(), "policy.yaml")
	text := fmt.Sprintf("database: %q\nlisten: %s\norchestrator: {development: true, agent_hosts: [%q, %q], tokens: {ann: %q}, policy: %q}\n",
		database, listen, goAgent, pyAgent, strings.Repeat("t", 32), rules)
	const asks = "version: \"1\"\nrules:\n  - {id: ask, when: 'task.goal == \"ask\"', effect: require_approval, reason: it is to be asked}\n"
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.WriteFile(rules, []byte(asks), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, says := child(t, "serve", "--config", file, "--roles", "api")
	_, _ = child(t, "serve", "--config", file, "--roles", "orchestrator")
	eventually(t, "http://"+listen+"/v1/agents", 200, "agents", says)
	for name, c := range map[string]struct {
		address string
		flags   []string
		test    []string
	}{
		"my-agent": {goAgent, nil, []string{"go", "test", "./..."}},
		"snake":    {pyAgent, []string{"--remote"}, []string{"python3", "-m", "unittest"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.test[0]); err != nil {
				t.Skip(err)
			}
			dir := filepath.Join(t.TempDir(), name)
			mustRun(t, append([]string{"agent", "new", dir}, c.flags...)...)
			own := exec.CommandContext(t.Context(), c.test[0], c.test[1:]...)
			own.Dir, own.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off")
			if out, err := own.CombinedOutput(); err != nil {
				t.Fatalf("its own test: %v\n%s", err, out)
			}
			serveAgent(t, "agent", "run", dir, "--address", c.address, "--orchestrator", "http://"+listen, "--token", strings.Repeat("t", 32))
			eventually(t, "http://"+listen+"/v1/agents", 200, `"`+name+`"`, says)
			there := []string{"--orchestrator", "http://" + listen, "--token", strings.Repeat("t", 32)}
			out := mustRun(t, append([]string{"task", "submit", "count", "--coordinator", name, "--input", `{"text":"how many words"}`, "--watch"}, there...)...)
			if !strings.Contains(out, "completed") {
				t.Errorf("the task: %s", out)
			}
			out = mustRun(t, append([]string{"task", "submit", "ask", "--coordinator", name, "--input", `{"text":"how many words"}`}, there...)...)
			task := strings.Fields(out)[1]
			eventually(t, "http://"+listen+"/v1/tasks?awaiting=approval", 200, task, says)
			approve := append([]string{"task", "approve", task}, there...)
			code, shown, hint := tool(t, approve...)
			var asked struct{ Subject string }
			if err := json.Unmarshal([]byte(shown), &asked); err != nil || code != 2 || !strings.Contains(hint, asked.Subject) {
				t.Fatalf("nothing is approved unseen: exit code %d, %v, %s %s", code, err, shown, hint)
			}
			mustRun(t, append(approve, "--subject", asked.Subject)...)
			if out := mustRun(t, append([]string{"task", "watch", task}, there...)...); !strings.Contains(out, "completed") {
				t.Errorf("the task that was approved: %s", out)
			}
			if code, _, _ := tool(t, "task", "submit", "count", "--coordinator", name, "--input", `{}`, "--watch", "--database-url", database); code == 0 {
				t.Error("a task without input is completed")
			}
		})
	}
}

// serveAgent runs a command until the test ends.
func serveAgent(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var stdout, stderr bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, &stdout, &stderr) }()
	t.Cleanup(func() {
		cancel()
		select {
		case code := <-done:
			if code != 0 {
				t.Errorf("%v: exit code %d: %s", args, code, &stderr)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%v does not end", args)
		}
	})
}

// Bad names and directories are refused, and nothing is written.
func TestAgentNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"agent", "new", filepath.Join(dir, "My Agent")}, {"agent", "new", dir}, {"agent", "run", "nobody"}, {"agent", "run", "./nowhere"},
		{"agent", "run", "payer", "--address", "8099"}, {"agent", "run", "payer", "--agent-id", "x"}} {
		if code, out, says := tool(t, args...); code != 2 {
			t.Errorf("%v: exit code %d: %s %s", args, code, out, says)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// Who listens already is not taken for the agent.
func TestAgentRunOnATakenPort(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(remote.Info{Protocol: remote.Protocol, Slug: "somebody"})
	}))
	t.Cleanup(other.Close)
	dir := filepath.Join(t.TempDir(), "snake")
	mustRun(t, "agent", "new", dir, "--remote")
	for _, what := range []string{dir, "payer"} {
		code, _, says := tool(t, "agent", "run", what, "--address", other.Listener.Addr().String(), "--orchestrator", other.URL)
		if code != 2 || !strings.Contains(says, "is in use") || !strings.Contains(says, "--address") || asked.Load() > 0 {
			t.Errorf("%s: exit code %d, %d requests: %s", what, code, asked.Load(), says)
		}
	}
}
