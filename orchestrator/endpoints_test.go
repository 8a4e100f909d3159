package orchestrator_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
	"repute/orchestrator/transaction"
)

// absent is a chain whose endpoints do not answer the first simulations.
type absent struct {
	outside
	left atomic.Int32
}

// Simulate answers once it was asked often enough.
func (c *absent) Simulate(ctx context.Context, o transaction.Origin, tx transaction.Tx) (transaction.Simulation,
	error) {
	if c.left.Add(-1) >= 0 {
		return transaction.Simulation{}, fmt.Errorf("1 of 2 endpoints of chain 7 answer, and 2 must agree: %w",
			repute.ErrUnavailable)
	}
	return c.outside.Simulate(ctx, o, tx)
}

// TestAbsentEndpointsDelayTheDryRun keeps a task from failing because the endpoints of the chain did
// not answer while its calls were simulated, within its budget.
func TestAbsentEndpointsDelayTheDryRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tries int32
		want  repute.TaskStatus
	}{{2, repute.TaskCompleted}, {1 << 30, repute.TaskFailed}} {
		h, _ := newHouse(t)
		chain, agent := &absent{}, switching{newWorker("payer"), func() {}}
		chain.left.Store(c.tries)
		agent.do = sends(pays(1, "1"))
		h.start(orchestrator.Options{Lenient: true, Chain: chain, ExecutionChain: 7,
			Modules: []orchestrator.Module{agent}})
		request := standard.Request{Coordinator: "payer"}
		if c.want == repute.TaskFailed {
			request.Budget.RuntimeMS = new(int64)
			*request.Budget.RuntimeMS = 1_000
		}
		task, run := h.ended(h.submit(request))
		if task.Status != c.want || c.want == repute.TaskFailed && !strings.Contains(run.Error, "could not be asked") {
			t.Errorf("absent for %d tries: %s, %s", c.tries, task.Status, run.Error)
		}
	}
}
