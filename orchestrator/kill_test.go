package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// workerURL makes this test binary a worker on that database, until it is killed;
// workerDies makes it kill itself as soon as that phase is recorded.
const (
	workerURL  = "REPUTE_TEST_WORKER"
	workerDies = "REPUTE_TEST_DIES"
)

// suicide is a log that ends the process when it hears of a phase.
type suicide struct {
	slog.Handler
	phase string
}

func (suicide) Enabled(context.Context, slog.Level) bool { return true }

func (s suicide) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s suicide) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == "phase recorded" && a.Key == "phase" && a.Value.String() == s.phase {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it comes
		}
		return true
	})
	return nil
}

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

// runWorker has an agent of three steps, each with a call that takes a moment. Asked to
// hang, it does so in one step until its time is over.
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
	agent.plan = func(t standard.Task) standard.Plan {
		if t.Goal == "hang" {
			return standard.Plan{Steps: []standard.Step{{ID: "hang", Agent: "steady"}}}
		}
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "steady"},
			{ID: "b", Agent: "steady", DependsOn: []string{"a"}}, {ID: "c", Agent: "steady"}}}
	}
	agent.do = func(ctx context.Context, s standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		if s.ID == "hang" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return c.Tool(ctx, "wait", json.RawMessage(`"`+s.ID+`"`))
	}
	wait := toolFunc(func(ctx context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		return in, nil
	})
	log := slog.New(suicide{slog.DiscardHandler, os.Getenv(workerDies)})
	e, err := orchestrator.New(db, orchestrator.Options{Lenient: true, Log: log, Hold: time.Second, Workers: 4,
		Policy:  func() *policy.Policy { return p },
		Modules: []orchestrator.Module{agent}, Tools: map[string]orchestrator.Tool{"wait": wait}})
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}

// spawn starts a worker on a database, which dies after a phase; empty: it does not.
func spawn(t *testing.T, url, dies string) *exec.Cmd {
	self, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), workerURL+"="+url, workerDies+"="+dies), os.Stderr
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// A worker that is killed between any phase and the next loses nothing: another goes on
// behind it, and no phase, step or call is done again.
func TestKilledAtEveryPhase(t *testing.T) {
	t.Parallel()
	for _, p := range repute.Phases() {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			h, url := newHouse(t)
			first := spawn(t, url, p.String())
			h.until("agent is installed",
				func() bool { _, err := rundb.Module(t.Context(), h.db, "steady"); return err == nil })
			task := h.submit(standard.Request{Coordinator: "steady"})
			if _ = first.Wait(); first.ProcessState.Success() {
				t.Fatal("the first worker was not killed")
			}
			done, err := rundb.Phases(t.Context(), h.db, task.Run)
			ok(t, err)
			if len(done) != int(p) {
				t.Fatalf("killed after phase %s, %d phases are stored", p, len(done))
			}
			spawn(t, url, "")
			task, run := h.ended(task)
			h.undoubled(task, run)
			again, err := rundb.Phases(t.Context(), h.db, task.Run)
			ok(t, err)
			if !slices.EqualFunc(done, again[:len(done)], func(a, b repute.RunPhase) bool {
				return a.Phase == b.Phase &&
					a.Ended.Equal(b.Ended)
			}) {
				t.Errorf("phases before %s were done again", p)
			}
			h.finished(task, 1)
		})
	}
}

// undoubled checks that a run of the steady agent is whole, with nothing done twice.
func (h *house) undoubled(task repute.Task, run repute.Run) {
	h.t.Helper()
	if task.Status != repute.TaskCompleted || run.Used.Steps != 3 {
		h.t.Errorf("task %s, %d steps counted: %s", task.Status, run.Used.Steps, run.Error)
	}
	if got := h.phases(run.ID); len(got) != 9 {
		h.t.Errorf("phases %v", got)
	}
	receipts, err := rundb.Receipts(h.t.Context(), h.db, run.ID)
	ok(h.t, err)
	calls := 0
	for _, r := range receipts {
		if r.Kind == repute.CallTool {
			calls++
		}
	}
	if calls != 3 || run.Used.ToolCalls != 3 {
		h.t.Errorf("%d calls were journaled, %d counted", calls, run.Used.ToolCalls)
	}
}

// A worker that is frozen in the middle of a run, and wakes up after another has ended it,
// changes nothing any more.
func TestFrozenWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	h, url := newHouse(t)
	frozen := spawn(t, url, "")
	h.until("agent is installed",
		func() bool { _, err := rundb.Module(t.Context(), h.db, "steady"); return err == nil })
	tasks := make([]repute.Task, 12)
	for i := range tasks {
		tasks[i] = h.submit(standard.Request{Coordinator: "steady"})
	}
	h.until("some run is in the middle", func() bool {
		for _, task := range tasks {
			if steps, err := rundb.Steps(t.Context(), h.db, task.Run); err == nil && len(steps) > 0 {
				return true
			}
		}
		return false
	})
	ok(t, frozen.Process.Signal(syscall.SIGSTOP))
	spawn(t, url, "")
	for i, task := range tasks {
		tasks[i], _ = h.ended(task)
	}
	before := h.eventsOf(tasks)
	ok(t, frozen.Process.Signal(syscall.SIGCONT))
	for range 8 { // it is at work again when these are done
		h.ended(h.submit(standard.Request{Coordinator: "steady"}))
	}
	for _, task := range tasks {
		task, run := h.ended(task)
		h.undoubled(task, run)
		h.finished(task, 1)
	}
	if after := h.eventsOf(tasks); after != before {
		t.Errorf("%d events of runs that had ended became %d", before, after)
	}
}

// eventsOf counts what happened to tasks.
func (h *house) eventsOf(tasks []repute.Task) (n int) {
	h.t.Helper()
	for _, task := range tasks {
		events, err := rundb.Events(h.t.Context(), h.db, task.Run, 0, 1000)
		ok(h.t, err)
		n += len(events)
	}
	return n
}

// Workers that are killed at any moment lose no run and no result, and do no step twice
// that was completed.
func TestKilledWorkersLoseNothing(t *testing.T) {
	t.Parallel()
	h, url := newHouse(t)
	workers := []*exec.Cmd{spawn(t, url, ""), spawn(t, url, ""), spawn(t, url, "")}
	h.until("agent is installed",
		func() bool { _, err := rundb.Module(t.Context(), h.db, "steady"); return err == nil })
	var tasks []repute.Task
	for range 40 {
		tasks = append(tasks, h.submit(standard.Request{Coordinator: "steady"}))
	}
	for range 8 {
		time.Sleep(time.Duration(50+rand.IntN(250)) * time.Millisecond)
		i := rand.IntN(len(workers))
		ok(t, workers[i].Process.Kill())
		_ = workers[i].Wait()
		workers[i] = spawn(t, url, "")
	}
	for _, task := range tasks {
		task, run := h.ended(task)
		h.undoubled(task, run)
	}
}
