package control_test

import (
	"net/http"
	"strings"
	"testing"

	"repute/store/rundb"
)

// TestTasksThatCannotBeStored sends tasks that Postgres, or readers in other languages,
// cannot hold. Each is refused by the name of its field, over REST and by the tool alike.
func TestTasksThatCannotBeStored(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, worker{slug: "plain"})
	b := h.tools(annsToken)
	nines := strings.Repeat("9", 80)
	for _, c := range []struct{ member, field string }{
		{`"input":` + strings.Repeat("[", 65) + strings.Repeat("]", 65), "input"},
		{`"input":{"a":["\u0000"]}`, "input"},
		{`"input":"\ud800"`, "input"},
		{`"input":"\udc00\ud800"`, "input"},
		{`"tags":["\u0000"]`, "tags"},
		{`"idempotencyKey":"\ud800"`, "idempotencyKey"},
		{`"valueAtRisk":"` + nines + `"`, "valueAtRisk"},
		{`"budget":{"maxSteps":2147483648}`, "maxSteps"},
		{`"budget":{"maxSteps":` + nines + `}`, "maxSteps"},
		{`"budget":{"maxToolCalls":2147483648}`, "maxToolCalls"},
		{`"budget":{"maxRuntimeMs":2147483648}`, "maxRuntimeMs"},
		{`"budget":{"maxOnchainWrites":2147483648}`, "maxOnchainWrites"},
		{`"budget":{"maxGasWei":"` + nines + `"}`, "maxGasWei"},
	} {
		body := `{"goal":"x","coordinatorSlug":"plain",` + c.member + `}`
		if r := h.ann(http.MethodPost, "/v1/tasks", body); r.status != http.StatusBadRequest ||
			!strings.Contains(string(r.body), c.field) {
			t.Errorf("%.60s: %d %s", c.member, r.status, r.body)
		}
		b.refuses("openfi_submit_task", body, c.field)
	}
	if list, err := rundb.Tasks(t.Context(), h.db, rundb.TaskFilter{}, 1); err != nil || len(list) > 0 {
		t.Errorf("%d tasks, %v", len(list), err)
	}
	h.ended(h.submit(`{"goal":"x","coordinatorSlug":"plain","input":` + strings.Repeat("[",
		60) + `"\ud83d\ude00"` + strings.Repeat("]", 60) + `,"budget":{"maxSteps":2147483647}}`))
}
