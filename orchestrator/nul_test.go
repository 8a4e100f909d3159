package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store/rundb"
)

// TestZeroByteInError keeps an agent's log readable whatever its errors hold.
func TestZeroByteInError(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	head := newWorker("head")
	head.do = func(context.Context, standard.Step, map[string]json.RawMessage,
		*orchestrator.Context) (json.RawMessage, error) {
		return nil, errors.New("bad \x00 byte")
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head}})
	_, run := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	if list, err := rundb.ReadLog(t.Context(), h.db, "head", rundb.LogPlace{}, 10); err != nil || len(list) != 1 {
		t.Errorf("log of the agent after run %s: %d entries, %v", run.ID, len(list), err)
	}
}

// TestUnreadableJSON refuses JSON that cannot be stored where agents and tools bring it in: a
// tool's input and answer, and the result of a step.
func TestUnreadableJSON(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	bad := map[string]json.RawMessage{"nul": json.RawMessage(`"\u0000"`), "half": json.RawMessage(`{"a":"\ud800"}`),
		"deep": json.RawMessage(strings.Repeat("[", 65) + strings.Repeat("]", 65))}
	var reached atomic.Int32
	says := toolFunc(func(_ context.Context, _ string, in json.RawMessage) (json.RawMessage, error) {
		reached.Add(1)
		return bad[strings.Trim(string(in), `"`)], nil
	})
	head := newWorker("head")
	head.plan = func(standard.Task) (p standard.Plan) {
		for id := range bad {
			p.Steps = append(p.Steps, standard.Step{ID: id, Agent: "head"})
		}
		return p
	}
	head.do = func(ctx context.Context, s standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		if _, err := c.Tool(ctx, "says", bad[s.ID]); !errors.Is(err, repute.ErrInvalid) ||
			!strings.HasPrefix(err.Error(), "input") {
			t.Errorf("%s as input: %v", s.ID, err)
		}
		if answer, err := c.Tool(ctx, "says", json.RawMessage(`"`+s.ID+`"`)); !errors.Is(err, repute.ErrInvalid) ||
			answer != nil || !strings.HasPrefix(err.Error(), "answer") {
			t.Errorf("%s as answer: %v", s.ID, err)
		}
		return bad[s.ID], nil
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head},
		Tools: map[string]orchestrator.Tool{"says": says}})
	_, run := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	steps, err := rundb.Steps(t.Context(), h.db, run.ID)
	if ok(t, err); len(steps) != len(bad) || reached.Load() != int32(len(bad)) || run.Status != repute.RunFailed {
		t.Errorf("%d steps, %d calls, run %s", len(steps), reached.Load(), run.Status)
	}
	for _, s := range steps {
		if s.Status != rundb.StepFailed || !strings.HasPrefix(s.Error, "result") {
			t.Errorf("step %s is %s: %s", s.ID, s.Status, s.Error)
		}
	}
}

// Reasons that allow are kept with a decision, and are no part of why something was refused.
func TestRefusalSaysWhatIsAgainstIt(t *testing.T) {
	t.Parallel()
	err := &transaction.DeniedError{Reasons: []policy.Reason{{ID: "identity", Effect: policy.Deny, Text: "no identity"},
		{ID: "trust.unrated", Effect: policy.Allow, Text: "nobody can rate it"}}}
	if err.Error() != "refused: no identity" {
		t.Error(err)
	}
}
