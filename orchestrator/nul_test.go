package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"repute/orchestrator"
	"repute/store"
)

// TestZeroByteInError keeps an agent's log readable whatever its errors hold.
func TestZeroByteInError(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	head := newWorker("head")
	head.do = func(context.Context, orchestrator.Step, map[string]json.RawMessage, *orchestrator.Context) (json.RawMessage, error) {
		return nil, errors.New("bad \x00 byte")
	}
	h.start(orchestrator.Options{Lenient: true, Modules: []orchestrator.Module{head}})
	_, run := h.ended(h.submit(orchestrator.Request{Coordinator: "head"}))
	if list, err := h.db.RunLog(t.Context(), "head", store.LogPlace{}, 10); err != nil || len(list) != 1 {
		t.Errorf("log of the agent after run %s: %d entries, %v", run.ID, len(list), err)
	}
}
