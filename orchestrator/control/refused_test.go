package control_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/standard"
)

// picky is an agent that takes tasks with an input alone.
type picky struct{ worker }

func (picky) CanHandle(_ context.Context, t standard.Task) (bool, error) {
	if len(t.Input) == 0 {
		return false, repute.Invalid("input", "is missing", "a job")
	}
	return string(t.Input) != `"none"`, nil
}

// What an agent of the binary cannot do, and gates that no agent can be asked to pass, are
// refused when they are asked for, not by the run.
func TestRefusedAtOnce(t *testing.T) {
	t.Parallel()
	agent := picky{worker{slug: "plain"}}
	h := newHouse(t, func(o *options) {
		o.Gates, o.Modules = []string{"service", "identity"}, []orchestrator.Module{agent}
	}, agent)
	for body, says := range map[string]string{
		`{"goal":"g"}`: `"field":"input"`,
		`{"goal":"g","input":1,"budget":{"maxRuntimeMs":"x"}}`:              `"field":"budget.maxRuntimeMs"`,
		`{"goal":"g","input":"none"}`:                                       "nothing that the agent does",
		`{"goal":"g","input":1,"threshold":{"gates":["service","nogate"]}}`: "threshold.gates[1]",
		`{"goal":"g","input":1,"threshold":{"gates":["reject"]}}`:           "one of service, identity",
	} {
		if r := h.ann(http.MethodPost, "/v1/tasks", body); r.status != http.StatusBadRequest ||
			!strings.Contains(string(r.body), says) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := h.ann(http.MethodPost, "/v1/agents/plain/trust",
		`{"threshold":{"gates":["nogate"]}}`); r.status != http.StatusBadRequest {
		t.Errorf("a question: %d %s", r.status, r.body)
	}
	h.submit(`{"goal":"g","input":1,"threshold":{"gates":["service"]}}`)
}

// Lengths count characters, as the OpenAPI document says.
func TestLengthsAreCharacters(t *testing.T) {
	t.Parallel()
	agent := worker{slug: "plain"}
	h := newHouse(t, func(o *options) { o.Modules = []orchestrator.Module{agent} }, agent)
	body := func(goal, key int) string {
		return `{"goal":"` + strings.Repeat("é", goal) + `","idempotencyKey":"` + strings.Repeat("é", key) + `"}`
	}
	h.submit(body(8192, 80))
	for field, b := range map[string]string{"goal": body(8193, 1), "idempotencyKey": body(1, 81)} {
		if r := h.ann(http.MethodPost, "/v1/tasks", b); r.status != http.StatusBadRequest ||
			!strings.Contains(string(r.body), `"field":"`+field+`"`) {
			t.Errorf("%s: %d %.200s", field, r.status, r.body)
		}
	}
}
