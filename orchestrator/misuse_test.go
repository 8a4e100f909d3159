package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/policyfile"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// outside is a chain on which everything succeeds for 10 wei of gas, and which remembers
// what was sent.
type outside struct {
	mu   sync.Mutex
	sent []transaction.Tx
}

func (o *outside) Read(context.Context, uint64, common.Address, []byte) ([]byte, error) {
	return []byte{1}, nil
}

func (o *outside) Simulate(context.Context, transaction.Origin, transaction.Tx) (transaction.Simulation, error) {
	return transaction.Simulation{OK: true, FeeWei: "10"}, nil
}

func (o *outside) Send(_ context.Context, i transaction.Intent) (transaction.Sent, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, i.Tx)
	return transaction.Sent{OK: true, FeeWei: "10", Hash: common.BytesToHash([]byte(i.ID))}, nil
}

// pays is a transaction to an address, of so many wei.
func pays(to byte, value string) transaction.Tx {
	return transaction.Tx{ChainID: 7, Target: common.Address{to}, Value: value, Data: []byte{1, 2, 3, 4},
		Purpose: "pay"}
}

// shower is an agent that has a dry run.
type shower struct {
	*worker
	shows []transaction.Tx
}

func (s shower) DryRun(context.Context, standard.Task, standard.Plan,
	*orchestrator.Context) (standard.DryRun, error) {
	return standard.DryRun{Calls: s.shows}, nil
}

// sends is a step that sends transactions until one is refused.
func sends(list ...transaction.Tx) orchestrator.StepFunc {
	return func(ctx context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		for _, tx := range list {
			if _, err := c.Send(ctx, tx); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// An agent that sends something else than it showed, or more than it may, is stopped before
// that is sent, with the reason; what was allowed before stays sent.
func TestNothingIsSentBeyondWhatIsAllowed(t *testing.T) {
	t.Parallel()
	shown := pays(1, "5")
	other := shown
	other.Data = []byte{4, 3, 2, 1}
	argument := shown
	argument.Data = []byte{1, 2, 3, 4, 5}
	cases := map[string]struct {
		does   []transaction.Tx
		shows  int // how often the one transaction; 0: there is no dry run
		budget policy.Bounds
		says   string // empty: it completes
		sent   int
	}{
		"as-shown":        {[]transaction.Tx{shown}, 1, policy.Bounds{}, "", 1},
		"twice, as shown": {[]transaction.Tx{shown, shown}, 2, policy.Bounds{}, "", 2},
		"twice":           {[]transaction.Tx{shown, shown}, 1, policy.Bounds{}, "showed this transaction 1 times", 1},
		"other-argument":  {[]transaction.Tx{argument}, 1, policy.Bounds{}, "showed no such transaction", 0},
		"other-target":    {[]transaction.Tx{shown, pays(2, "5")}, 1, policy.Bounds{}, "showed no such transaction", 1},
		"other-value":     {[]transaction.Tx{pays(1, "6")}, 1, policy.Bounds{}, "showed no such transaction", 0},
		"other-function":  {[]transaction.Tx{other}, 1, policy.Bounds{}, "showed no such transaction", 0},
		"one-write-more": {[]transaction.Tx{shown, shown, shown}, 0, policy.Bounds{OnchainWrites: new(int64(2))},
			"maxOnchainWrites", 2},
		"one-wei-too-many": {[]transaction.Tx{shown, shown, shown}, 3, policy.Bounds{GasWei: "29"}, "maxGasWei", 2},
		"gas-just-enough":  {[]transaction.Tx{shown, shown}, 2, policy.Bounds{GasWei: "20"}, "", 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newHouse(t)
			chain, agent := &outside{}, newWorker("payer")
			agent.do = sends(c.does...)
			var module orchestrator.Module = agent
			if c.shows > 0 {
				module = shower{agent, slices.Repeat([]transaction.Tx{shown}, c.shows)}
			}
			h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
				Modules: []orchestrator.Module{module}})
			task, run := h.ended(h.submit(standard.Request{Coordinator: "payer",
				Terms: standard.Terms{Budget: c.budget}}))
			if (c.says == "") != (task.Status == repute.TaskCompleted) || !strings.Contains(run.Error, c.says) ||
				len(chain.sent) != c.sent {
				t.Errorf("task %s, %d transactions sent: %s", task.Status, len(chain.sent), run.Error)
			}
			if run.Used.Writes != c.sent || run.Used.GasWei != fmt.Sprint(10*c.sent) {
				t.Errorf("%d writes and %s wei counted of %d sent", run.Used.Writes, run.Used.GasWei, c.sent)
			}
		})
	}
}

// A limit that a task leaves open is the policy's, also where that is less than the usual one.
func TestWhatATaskLeavesOpenIsThePolicys(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	p, err := policy.Parse([]byte("version: \"1\"\nlimits: {maxSteps: 4, maxGasWei: \"29\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	three := []transaction.Tx{pays(1, "5"), pays(1, "5"), pays(1, "5")}
	chain, agent := &outside{}, shower{newWorker("payer"), three}
	agent.do = sends(three...)
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Modules: []orchestrator.Module{agent},
		Policy: func() *policy.Policy { return p }})
	task, run := h.ended(h.submit(standard.Request{Coordinator: "payer"}))
	if task.Status != repute.TaskFailed || !strings.Contains(run.Error, "maxGasWei is used up") ||
		len(chain.sent) != 2 {
		t.Errorf("task %s, %d transactions sent: %s", task.Status, len(chain.sent), run.Error)
	}
	if run.Limits.GasWei != "29" || run.Limits.Steps != 4 || run.Limits.ToolCalls != 50 {
		t.Errorf("the run was limited to %+v", run.Limits)
	}
	task, run = h.ended(h.submit(standard.Request{Coordinator: "payer",
		Terms: standard.Terms{Budget: policy.Bounds{GasWei: "30"}}}))
	if task.Status != repute.TaskRejected || !strings.Contains(run.Error, "give budget.maxGasWei of at most that") {
		t.Errorf("task %s: %s", task.Status, run.Error)
	}
}

// vain is an agent whose manifest changes while it works.
type vain struct {
	*worker
	mu sync.Mutex
}

func (v *vain) Info() standard.Info {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.info
}

// Agents that misbehave in ways that need more than a method: each fails its run with a
// reason.
func TestAgentsThatCheat(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	editor := &vain{worker: newWorker("editor")}
	editor.do = func(context.Context, standard.Step, map[string]json.RawMessage,
		*orchestrator.Context) (json.RawMessage, error) {
		editor.mu.Lock()
		defer editor.mu.Unlock()
		editor.info.Manifest.ComputeConstraints.MaxSteps = new(int64(1000))
		return nil, nil
	}
	long := newWorker("long")
	long.plan = func(standard.Task) (p standard.Plan) {
		for i := range 4 {
			p.Steps = append(p.Steps, standard.Step{ID: fmt.Sprint(i), Agent: "long"})
		}
		return p
	}
	lazy := newWorker("lazy") // says that it did its plan, and did not
	lazy.execute = func(context.Context, standard.Plan, *orchestrator.Context) (standard.Execution, error) {
		return standard.Execution{Success: true}, nil
	}
	early := newWorker("early") // sends before Execute
	sender := &outside{}
	h.start(orchestrator.Options{Lenient: true, Chain: sender, ExecutionChain: 7,
		Modules: []orchestrator.Module{editor, long, lazy, prompt{early}}})
	for slug, c := range map[string]struct {
		budget policy.Bounds
		says   string
	}{
		"editor": {policy.Bounds{}, "changed its manifest"},
		"long":   {policy.Bounds{Steps: new(int64(3))}, "4 steps"},
		"lazy":   {policy.Bounds{}, "step only is not run"},
		"early":  {policy.Bounds{}, "Execute alone"},
	} {
		task, run := h.ended(h.submit(standard.Request{Coordinator: slug, Terms: standard.Terms{Budget: c.budget}}))
		if task.Status != repute.TaskFailed || !strings.Contains(run.Error, c.says) {
			t.Errorf("%s: task %s: %q lacks %q", slug, task.Status, run.Error, c.says)
		}
	}
	if len(sender.sent) != 0 {
		t.Errorf("sent: %+v", sender.sent)
	}
}

// prompt is an agent that sends a transaction while it plans.
type prompt struct{ *worker }

func (p prompt) Plan(ctx context.Context, t standard.Task, c *orchestrator.Context) (standard.Plan, error) {
	if _, err := c.Send(ctx, pays(1, "5")); err != nil {
		return standard.Plan{}, err
	}
	return p.worker.Plan(ctx, t, c)
}

// An agent that ignores that its task is cancelled is left behind, and the calls that it
// makes afterwards are refused.
func TestCancelOfAgentThatIgnoresIt(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	begun, over, after := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	deaf := newWorker("deaf")
	deaf.do = func(_ context.Context, _ standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		close(begun)
		<-over
		_, err := c.Tool(context.Background(), "echo", nil)
		after <- err
		return nil, nil
	}
	called := toolFunc(func(_ context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		t.Error("a call was made after the end")
		return in, nil
	})
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{deaf},
		Tools: map[string]orchestrator.Tool{"echo": called}})
	task := h.submit(standard.Request{Coordinator: "deaf"})
	<-begun
	ok(t, h.client.Cancel(t.Context(), task.ID, "ann", "enough"))
	task, run := h.ended(task)
	close(over)
	if err := <-after; err == nil {
		t.Error("a call after the end was made")
	}
	if task.Status != repute.TaskCancelled || run.Used.ToolCalls != 0 {
		t.Errorf("task %s, %d calls: %s", task.Status, run.Used.ToolCalls, run.Error)
	}
}

// A policy's file that stops to compile changes nothing, one that never did is refused, and
// a new one counts as soon as it is read.
func TestPolicyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) { // at once: a slow machine must not see half a file twice
		ok(t, os.WriteFile(path+".new", []byte(text), 0o600))
		ok(t, os.Rename(path+".new", path))
	}
	const broken = "version: \"1\"\nrules:\n  - {id: a, when: 'agent.nothing > 1', effect: deny, reason: x}\n"
	write(broken)
	if _, err := policyfile.OpenPolicy(path, nil); !errors.Is(err, repute.ErrInvalid) ||
		!strings.Contains(err.Error(), "rules[0].when") {
		t.Fatalf("a policy that does not compile: %v", err)
	}
	if _, err := policyfile.OpenPolicy(path+".none", nil); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("no file: %v", err)
	}
	write(anything)
	f, err := policyfile.OpenPolicy(path, nil)
	ok(t, err)
	first := f.Current().Hash()
	said := make(chan string, 100)
	go f.Watch(t.Context(), 5*time.Millisecond, slog.New(tells{slog.DiscardHandler, said}))
	write(broken)
	if text := <-said; !strings.Contains(text, "wrong") || f.Current().Hash() != first {
		t.Errorf("after a broken file %s counts: %s", f.Current().Hash(), text)
	}
	write(unrated("allow"))
	if text := <-said; !strings.Contains(text, "policy read") || f.Current().Hash() == first {
		t.Errorf("after a good file %s counts: %s", f.Current().Hash(), text)
	}
}

// tells is a log whose messages a test waits for.
type tells struct {
	slog.Handler
	said chan string
}

func (tells) Enabled(context.Context, slog.Level) bool { return true }

func (l tells) Handle(_ context.Context, r slog.Record) error {
	l.said <- r.Message
	return nil
}
