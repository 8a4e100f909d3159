package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute/contracts"
	"repute/internal/freeport"
	"repute/internal/pgtest"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

// What agent new writes compiles, passes its own test, and does a task once it runs. The
// process that answers is another one than that which runs tasks.
func TestAgentNew(t *testing.T) {
	t.Parallel()
	listen, database := freeport.Address(t), pgtest.New(t)
	goAgent, pyAgent := freeport.Address(t), freeport.Address(t)
	file, rules := filepath.Join(t.TempDir(), "repute.yaml"), filepath.Join(t.TempDir(), "policy.yaml")
	text := fmt.Sprintf("database: %q\nlisten: %s\norchestrator: {development: true, agent_hosts: [%q, %q], tokens: {ann: %q}, policy: %q}\n",
		database, listen, goAgent, pyAgent, strings.Repeat("t", 32), rules)
	const asks = "version: \"1\"\nrules:\n  - {id: ask, when: 'task.goal == \"ask\"', effect: require_approval, reason: it is to be asked}\n"
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600),
		os.WriteFile(rules, []byte(asks), 0o600)); err != nil {
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
			serveAgent(t, "agent", "run", dir, "--address", c.address, "--orchestrator", "http://"+listen, "--token",
				strings.Repeat("t", 32))
			eventually(t, "http://"+listen+"/v1/agents", 200, `"`+name+`"`, says)
			there := []string{"--orchestrator", "http://" + listen, "--token", strings.Repeat("t", 32)}
			out := mustRun(t, append([]string{"task", "submit", "count", "--coordinator", name, "--input",
				`{"text":"how many words"}`, "--watch"}, there...)...)
			if !strings.Contains(out, "completed") ||
				!strings.Contains(out, "summary  There are 3 words.\nresult   count {\"words\":3}\n") {
				t.Errorf("the task: %s", out)
			}
			here := []string{"--database-url", database}
			for _, where := range [][]string{there, here} {
				if out := mustRun(t, append([]string{"run", "show", strings.Fields(out)[1]},
					where...)...); !strings.Contains(out,
					"result   count {\"words\":3}\n") {
					t.Errorf("the run: %s", out)
				}
				lines := strings.Split(strings.TrimSpace(mustRun(t,
					append([]string{"task", "watch", strings.Fields(out)[1], "--json"}, where...)...)), "\n")
				var last struct {
					Kind    string
					Status  string
					Summary struct{ Text string }
					Steps   []struct{ Result struct{ Words int } }
				}
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Kind != "result" ||
					last.Status != "completed" || last.Summary.Text != "There are 3 words." || len(last.Steps) != 1 ||
					last.Steps[0].Result.Words != 3 {
					t.Errorf("watched last: %s, %v", lines[len(lines)-1], err)
				}
				var shown struct {
					Steps []struct{ Result struct{ Words int } }
				}
				if out := mustRun(t, append([]string{"run", "show", strings.Fields(out)[1], "--json"},
					where...)...); json.Unmarshal([]byte(out), &shown) != nil || len(shown.Steps) != 1 ||
					shown.Steps[0].Result.Words != 3 {
					t.Errorf("the run in JSON: %s", out)
				}
			}
			out = mustRun(t, append([]string{"task", "submit", "count", "--coordinator", name, "--input",
				`{"text":"two words"}`, "--watch"}, here...)...)
			if !strings.Contains(out, "result   count {\"words\":2}\n") {
				t.Errorf("the task by the database: %s", out)
			}
			out = mustRun(t, append([]string{"task", "submit", "ask", "--coordinator", name, "--input",
				`{"text":"how many words"}`}, there...)...)
			task := strings.Fields(out)[1]
			eventually(t, "http://"+listen+"/v1/tasks?awaiting=approval", 200, task, says)
			approve := append([]string{"task", "approve", task}, there...)
			code, shown, hint := tool(t, approve...)
			var asked struct{ Subject string }
			if err := json.Unmarshal([]byte(shown), &asked); err != nil || code != 2 ||
				!strings.Contains(hint, asked.Subject) {
				t.Fatalf("nothing is approved unseen: exit code %d, %v, %s %s", code, err, shown, hint)
			}
			mustRun(t, append(approve, "--subject", asked.Subject)...)
			if out := mustRun(t, append([]string{"task", "watch", task}, there...)...); !strings.Contains(out,
				"completed") {
				t.Errorf("the task that was approved: %s", out)
			}
			if code, _, _ := tool(t, "task", "submit", "count", "--coordinator", name, "--input", `{}`, "--watch",
				"--database-url", database); code == 0 {
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

// The scaffolds say how to declare what an agent cannot know before it sends: the example of
// each README is an answer that the orchestrator takes, and the types of the Go scaffold have
// every member that a transaction and a placeholder may have.
func TestScaffoldsDeclarePlaceholders(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--remote"}} {
		dir := filepath.Join(t.TempDir(), "agent")
		mustRun(t, append([]string{"agent", "new", dir}, flags...)...)
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(readme), "```json\n")
		text, _, _ = strings.Cut(text, "```")
		var shows struct{ Result standard.DryRun }
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&shows); err != nil || len(shows.Result.Calls) != 1 {
			t.Fatalf("%v: the example of the README: %v", flags, err)
		}
		takesDryRun(t, shows.Result)
		if flags != nil {
			continue
		}
		for name, typ := range map[string]reflect.Type{"transaction": reflect.TypeFor[transaction.Tx](),
			"placeholder": reflect.TypeFor[transaction.Placeholder](),
			"simulated":   reflect.TypeFor[standard.DryRun]()} {
			if got, want := membersIn(t, filepath.Join(dir, "protocol.go"), name), membersOf(typ); !slices.Equal(got,
				want) {
				t.Errorf("%s has %q, the protocol %q", name, got, want)
			}
		}
	}
}

// takesDryRun checks that the call is what its function says, and its sample within the bounds
// of its placeholders.
func takesDryRun(t *testing.T, shows standard.DryRun) {
	t.Helper()
	tx := shows.Calls[0]
	f, err := contracts.ParseFunction(tx.Function)
	if err != nil {
		t.Fatal(err)
	}
	args, err := f.Decode(tx.Data)
	if err != nil || len(args.List()) != 2 || len(tx.Placeholders) != 2 {
		t.Fatalf("the call of %s: %v, %d placeholders", tx.Function, err, len(tx.Placeholders))
	}
	for i, p := range tx.Placeholders {
		a := args.List()[i]
		inside := slices.ContainsFunc(p.OneOf, func(one common.Address) bool { return one.Hex() == a.Value })
		if n, ok := new(big.Int).SetString(a.Value, 10); ok {
			low, _ := new(big.Int).SetString(p.Min, 10)
			high, _ := new(big.Int).SetString(p.Max, 10)
			inside = low != nil && high != nil && n.Cmp(low) >= 0 && n.Cmp(high) <= 0
		}
		if a.Path != p.Path || a.Type != p.Type || !inside {
			t.Errorf("placeholder %+v does not hold the sample %+v", p, a)
		}
	}
}

// membersIn are the names in JSON of the members of a struct in a Go file, sorted.
func membersIn(t *testing.T, path, name string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		if !is || spec.Name.Name != name {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			out = append(out, jsonName(reflect.StructTag(strings.Trim(f.Tag.Value, "`"))))
		}
		return false
	})
	slices.Sort(out)
	return out
}

// membersOf are the names in JSON of the members of a type, sorted.
func membersOf(typ reflect.Type) (out []string) {
	for f := range typ.Fields() {
		out = append(out, jsonName(f.Tag))
	}
	slices.Sort(out)
	return out
}

func jsonName(tag reflect.StructTag) string {
	name, _, _ := strings.Cut(tag.Get("json"), ",")
	return name
}

// Bad names and directories are refused, and nothing is written.
func TestAgentNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"agent", "new", filepath.Join(dir, "My Agent")}, {"agent", "new", dir},
		{"agent", "run", "nobody"}, {"agent", "run", "./nowhere"},
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
		code, _, says := tool(t, "agent", "run", what, "--address", other.Listener.Addr().String(), "--orchestrator",
			other.URL)
		if code != 2 || !strings.Contains(says, "is in use") || !strings.Contains(says, "--address") ||
			asked.Load() > 0 {
			t.Errorf("%s: exit code %d, %d requests: %s", what, code, asked.Load(), says)
		}
	}
}
