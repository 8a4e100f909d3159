package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/freeport"
	"repute/orchestrator"
	"repute/orchestrator/outbound"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
	"repute/policy"
)

// TestPythonExample holds a conversation with examples/python.
func TestPythonExample(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	testExample(t, "word-counter", python, "../../examples/python/agent.py")
}

// TestTypeScriptExample holds the same conversation with examples/agent-ts, which make
// examples compiles.
func TestTypeScriptExample(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	const compiled = "../../examples/agent-ts/dist/agent.js"
	if _, err := os.Stat(compiled); err != nil {
		t.Skip("examples/agent-ts is not compiled: run make examples")
	}
	testExample(t, "word-counter-ts", node, compiled)
}

// testExample starts an example agent and asks it everything that a run asks.
func testExample(t *testing.T, slug, program, source string) {
	port := freeport.Port(t)
	cmd := exec.Command(program, source, port)
	ok(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	client, _ := watch(t, "")
	base := "http://127.0.0.1:" + port
	m := opened(t, base, client)
	task := standard.Task{ID: "t", Goal: "count", Input: json.RawMessage(`{"url": "https://example.com"}`)}
	for input, want := range map[string]bool{`{"url": "https://example.com"}`: true, `{}`: false, `"page"`: false} {
		can, err := m.CanHandle(t.Context(), standard.Task{ID: "t", Goal: "count", Input: json.RawMessage(input)})
		if why := fmt.Sprint(err); can != want ||
			can == strings.Contains(why, `cannot handle the task: the input is no {"url"`) {
			t.Errorf("with %s the example says %t, %s", input, can, why)
		}
	}
	if info := m.Info(); info.Slug != slug || info.Manifest.Budget().OnchainWrites != 0 {
		t.Errorf("the example is %+v", m.Info())
	}
	c := &orchestrator.Context{RunID: "r"}
	plan, err := m.Plan(t.Context(), task, c)
	if ok(t, err); len(plan.Steps) != 1 {
		t.Errorf("the example plans %+v", plan)
	}
	q := remote.Question{Protocol: remote.Protocol, RunID: "r", TaskID: "t", Budget: &policy.Budget{},
		Threshold: &policy.Threshold{}, Task: task,
		Plan: &plan, Step: &plan.Steps[0], Outcomes: []remote.Outcome{}}
	if a := asked(t, client, base+"/execute", q); len(a.Calls) != 1 || a.Calls[0].HTTP.URL != "https://example.com" {
		t.Errorf("the example wants %+v", a)
	}
	page, err := json.Marshal(outbound.HTTPResponse{Status: 200, Body: []byte("one two")})
	ok(t, err)
	q.Outcomes = []remote.Outcome{{Result: page}}
	if a := asked(t, client, base+"/execute", q); wordsOf(t, a.Result) != 2 {
		t.Errorf("the example counts %s", a.Result)
	}
	done := standard.Execution{Success: true,
		Steps: []standard.StepResult{{StepID: plan.Steps[0].ID, Status: "completed",
			Result: json.RawMessage(`{"words": 7}`)}}}
	checked, err := m.Verify(t.Context(), task, done, c)
	if ok(t, err); len(checked.Checks) != 1 || !checked.Checks[0].Passed {
		t.Errorf("the example checks %+v", checked)
	}
	said, err := m.Summarize(t.Context(), task, done, checked, c)
	if ok(t, err); said.Text != "The page has 7 words." {
		t.Errorf("the example says %+v", said)
	}
}

// wordsOf returns the number of words in a step's result.
func wordsOf(t *testing.T, result json.RawMessage) int {
	t.Helper()
	var counted struct{ Words int }
	ok(t, json.Unmarshal(result, &counted))
	return counted.Words
}

// asked puts a question by hand: a step is asked for within a run alone.
func asked(t *testing.T, client *http.Client, url string, q remote.Question) (a remote.Answer) {
	t.Helper()
	body, err := json.Marshal(q)
	ok(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	ok(t, err)
	res, err := client.Do(r)
	ok(t, err)
	defer res.Body.Close()
	ok(t, json.NewDecoder(res.Body).Decode(&a))
	return a
}

// opened waits until an agent listens.
func opened(t *testing.T, url string, client *http.Client) orchestrator.Module {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		m, err := remote.Open(ctx, url, remote.Options{Client: client})
		if err == nil {
			return m
		}
		if !errors.Is(err, repute.ErrUnavailable) || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
