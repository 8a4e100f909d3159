package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"repute"
	"repute/orchestrator"
	"repute/policy"
	"repute/store"
)

// workerURL makes this test binary a worker on that database, until it is killed.
const workerURL = "REPUTE_TEST_WORKER"

func TestMain(m *testing.M) {
	if url := os.Getenv(workerURL); url != "" {
		if err := runWorker(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runWorker has an agent of three steps, each with a call that takes a moment.
func runWorker(url string) error {
	db, err := store.Open(context.Background(), url, store.Options{})
	if err != nil {
		return err
	}
	p, err := policy.Parse([]byte(anything))
	if err != nil {
		return err
	}
	agent := newWorker("steady")
	agent.plan = func(orchestrator.Task) orchestrator.Plan {
		return orchestrator.Plan{Steps: []orchestrator.Step{{ID: "a", Agent: "steady"}, {ID: "b", Agent: "steady", DependsOn: []string{"a"}}, {ID: "c", Agent: "steady"}}}
	}
	agent.do = func(ctx context.Context, s orchestrator.Step, _ map[string]json.RawMessage, c *orchestrator.Context) (json.RawMessage, error) {
		return c.Tool(ctx, "wait", json.RawMessage(`"`+s.ID+`"`))
	}
	wait := toolFunc(func(ctx context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		return in, nil
	})
	e, err := orchestrator.New(db, orchestrator.Options{Lenient: true, Hold: time.Second, Workers: 4, Policy: func() *policy.Policy { return p },
		Modules: []orchestrator.Module{agent}, Tools: map[string]orchestrator.Tool{"wait": wait}})
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}

// Workers that are killed at any moment lose no run and no result, and do no step twice
// that was completed.
func TestKilledWorkersLoseNothing(t *testing.T) {
	t.Parallel()
	h, url := newHouse(t)
	self, err := os.Executable()
	ok(t, err)
	spawn := func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env, cmd.Stderr = append(os.Environ(), workerURL+"="+url), os.Stderr
		ok(t, cmd.Start())
		return cmd
	}
	workers := []*exec.Cmd{spawn(), spawn(), spawn()}
	defer func() {
		for _, w := range workers {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	}()
	h.until("agent is installed", func() bool { _, err := h.db.Module(t.Context(), "steady"); return err == nil })
	var tasks []repute.Task
	for range 40 {
		tasks = append(tasks, h.submit(orchestrator.Request{Coordinator: "steady"}))
	}
	for range 8 {
		time.Sleep(time.Duration(50+rand.IntN(250)) * time.Millisecond)
		i := rand.IntN(len(workers))
		ok(t, workers[i].Process.Kill())
		_ = workers[i].Wait()
		workers[i] = spawn()
	}
	for _, task := range tasks {
		task, run := h.ended(task)
		if task.Status != repute.TaskCompleted || run.Used.Steps != 3 {
			t.Errorf("task %s, %d steps counted: %s", task.Status, run.Used.Steps, run.Error)
		}
		if got := h.phases(run.ID); len(got) != 9 {
			t.Errorf("phases %v", got)
		}
		receipts, err := h.db.RunReceipts(t.Context(), run.ID)
		ok(t, err)
		calls := 0
		for _, r := range receipts {
			if r.Kind == repute.CallTool {
				calls++
			}
		}
		if calls != 3 || run.Used.ToolCalls != 3 {
			t.Errorf("%d calls were journaled, %d counted", calls, run.Used.ToolCalls)
		}
	}
}
