package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"repute/orchestrator"
	"repute/policy"
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

// Reasons that allow are kept with a decision, and are no part of why something was refused.
func TestRefusalSaysWhatIsAgainstIt(t *testing.T) {
	t.Parallel()
	err := &orchestrator.DeniedError{Reasons: []policy.Reason{{ID: "identity", Effect: policy.Deny, Text: "no identity"}, {ID: "trust.unrated", Effect: policy.Allow, Text: "nobody can rate it"}}}
	if err.Error() != "refused: no identity" {
		t.Error(err)
	}
}
