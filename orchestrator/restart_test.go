package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"repute"
	"repute/internal/pg"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/store"
	"repute/store/rundb"
)

// ofDriver matches what only the driver or the server would say.
var ofDriver = regexp.MustCompile(`(?i)sqlstate|postgres|127\.0\.0\.1|\bdial\b|\bconnect|conn |\beof\b|terminat|database=|user=|begin call|end call`)

// heard is what agents were told.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) add(err error) {
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list = append(h.list, err.Error())
	}
}

// A Postgres that dies and comes back under many runs fails none of them, and none of its
// words reaches an agent, a run or its events.
func TestRunsOutliveTheDatabase(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "restart") // that of t belongs to the user alone who runs the test
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ok(t, os.Chmod(dir, 0o755))
	dir = filepath.Join(dir, "pg")
	server, err := pg.Start(t.Context(), pg.Options{Dir: dir})
	ok(t, err)
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	server.Keep()
	ok(t, store.Migrate(t.Context(), server.URL()))
	h := &house{t: t, db: open(t, server.URL())}
	h.client, err = tasks.NewClient(h.db)
	ok(t, err)

	told, calls := &heard{}, atomic.Int32{}
	slow := toolFunc(func(_ context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		calls.Add(1)
		time.Sleep(20 * time.Millisecond)
		return in, nil
	})
	head, hand := newWorker("head"), newWorker("hand")
	does := func(ctx context.Context, s standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		for range 5 {
			if _, err := c.Tool(ctx, "slow", json.RawMessage(fmt.Sprintf("%q", s.ID))); err != nil {
				told.add(err)
				return nil, fmt.Errorf("the tool failed: %w", err)
			}
		}
		return json.RawMessage("1"), nil
	}
	head.do, hand.do = does, does
	head.plan = func(standard.Task) standard.Plan {
		return standard.Plan{Steps: []standard.Step{{ID: "a", Agent: "head"},
			{ID: "b", Agent: "hand", DependsOn: []string{"a"}}, {ID: "c", Agent: "head", DependsOn: []string{"a"}}}}
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head, hand},
		Tools: map[string]orchestrator.Tool{"slow": slow}})
	var tasks []repute.Task
	for range 40 {
		tasks = append(tasks, h.submit(standard.Request{Coordinator: "head"}))
	}
	for range 2 {
		before := calls.Load()
		h.until("runs are worked on", func() bool { return calls.Load() > before+20 })
		text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
		ok(t, err)
		pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
		ok(t, err)
		ok(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	for _, task := range tasks {
		h.until("task ends", func() bool {
			run, err := rundb.Run(t.Context(), h.db, task.Run)
			return err == nil && run.Status.Ended()
		})
		h.db.Pool().Reset() // a server process of before the kill may answer once more, and then end
		h.until("the database answers", func() bool { return h.db.Ping(t.Context()) == nil })
		done, run := h.ended(task)
		if done.Status != repute.TaskCompleted {
			t.Errorf("task %s: %s", done.Status, run.Error)
		}
		events, err := rundb.Events(t.Context(), h.db, task.Run, 0, 1000)
		ok(t, err)
		for _, e := range events {
			if ofDriver.Match(e.Data) {
				t.Errorf("event %s says %s", e.Kind, e.Data)
			}
		}
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	if len(told.list) == 0 {
		t.Error("the database was never away under a call")
	}
	for _, text := range told.list {
		if ofDriver.MatchString(text) {
			t.Errorf("an agent was told %q", text)
		}
	}
}
