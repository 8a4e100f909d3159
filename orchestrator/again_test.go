package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
)

// A task that is tried again from its plan pays once, however the agent calls its steps.
func TestRetryFromPlanPaysOnce(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	chain, head := &outside{}, newWorker("head")
	var plans atomic.Int32
	head.plan = func(standard.Task) standard.Plan {
		n := plans.Add(1)
		pay := fmt.Sprintf("pay-%d", n)
		return standard.Plan{Steps: []standard.Step{{ID: pay, Agent: "head"},
			{ID: "then", Agent: "head", DependsOn: []string{pay}}}}
	}
	head.do = func(ctx context.Context, s standard.Step, _ map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		if s.ID == "then" {
			if plans.Load() == 1 {
				return nil, fmt.Errorf("not today")
			}
			return nil, nil
		}
		tx := pays(1, "5")
		tx.Key = "payment"
		_, err := c.Send(ctx, tx)
		return nil, err
	}
	h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7, Modules: []orchestrator.Module{head}})
	task, _ := h.ended(h.submit(standard.Request{Coordinator: "head"}))
	if err := h.client.Retry(t.Context(), task.ID, repute.PhasePlan, "ann"); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another plan after a payment: %v", err)
	}
	ok(t, h.client.Retry(t.Context(), task.ID, repute.PhaseExecute, "ann"))
	task, run := h.ended(task)
	if len(chain.sent) != 1 {
		t.Errorf("task %s %s: one payment was meant, %d were sent", task.Status, run.Error, len(chain.sent))
	}
}
