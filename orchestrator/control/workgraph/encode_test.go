package workgraph

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"repute/api/wire/work"
	"repute/orchestrator/approval"
	"repute/orchestrator/control"
	"repute/orchestrator/control/rest"
)

// TestStepsInGraph: steps of the plan keep its order whatever order they ended in, a step that has not begun is
// planned, and steps that the plan does not have follow in the order in which they were stored.
func TestStepsInGraph(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}`), 0, 8, rapid.ID).Draw(rt, "steps")
		planned := rapid.IntRange(0, len(ids)).Draw(rt, "planned")
		plan := &control.Plan{}
		for _, id := range ids[:planned] {
			plan.Steps = append(plan.Steps, control.PlannedStep{ID: id, Description: "do " + id, Agent: "worker"})
		}
		var done []control.Step
		var others []string
		for _, id := range rapid.Permutation(ids).Draw(rt, "order") {
			inPlan := slices.Contains(ids[:planned], id)
			if inPlan && rapid.Bool().Draw(rt, "not begun") {
				continue
			}
			done = append(done, control.Step{ID: id, Status: "completed", Result: json.RawMessage(`1`)})
			if !inPlan {
				others = append(others, id)
			}
		}
		out := stepsInGraph(done, plan)
		var got []string
		for _, s := range out {
			got = append(got, s.ID)
			began := slices.ContainsFunc(done, func(d control.Step) bool { return d.ID == s.ID })
			inPlan := slices.Contains(ids[:planned], s.ID)
			if began != (s.Status == "completed") || began != (s.Result != nil) || !began && s.Status != "planned" ||
				inPlan != (s.Agent != nil) || s.DependsOn == nil {
				rt.Fatalf("%+v", s)
			}
		}
		if want := slices.Concat(ids[:planned], others); !slices.Equal(got, want) {
			rt.Fatalf("%v, not %v", got, want)
		}
	})
	if out := stepsInGraph(nil, nil); out == nil || len(out) != 0 {
		t.Errorf("no plan and no steps: %v", out)
	}
}

// TestResultIsCut: a long result of a step is cut to its bound, in whole characters, and a step without a result has
// none.
func TestResultIsCut(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("ä", shownResult) + `"`
	out := stepsInGraph([]control.Step{{ID: "a", Result: json.RawMessage(long)}, {ID: "b"},
		{ID: "c", Result: json.RawMessage(`{"x":1}`)}}, nil)
	if r := *out[0].Result; len(r) > shownResult || !utf8.ValidString(r) || !strings.HasSuffix(r, "…") {
		t.Errorf("%d bytes, valid %t, ends with %q", len(r), utf8.ValidString(r), r[len(r)-3:])
	}
	if out[1].Result != nil || *out[2].Result != `{"x":1}` {
		t.Errorf("%v and %v", out[1].Result, *out[2].Result)
	}
}

// TestAmounts: an absent limit is none, and an absent amount that was used is zero.
func TestAmounts(t *testing.T) {
	t.Parallel()
	limits := limitsInGraph(&rest.Amounts{Steps: 3})
	if limits.Steps != 3 || limits.GasWei != nil || limits.Tokens != nil || limits.CostUsd != nil {
		t.Errorf("limits: %+v", limits)
	}
	used := usedInGraph(&rest.Amounts{Steps: 3})
	if used.Steps != 3 || *used.GasWei != "0" || *used.Tokens != 0 || *used.CostUsd != "0" {
		t.Errorf("used: %+v", used)
	}
	all := rest.Amounts{Steps: 1, ToolCalls: 2, Writes: 3, RuntimeMS: 4, GasWei: "5", Tokens: 6, CostUSD: "0.7"}
	if l, u := limitsInGraph(&all), usedInGraph(&all); !reflect.DeepEqual(l, *u) || *l.GasWei != "5" || *l.Tokens != 6 ||
		*l.CostUsd != "0.7" || l.ToolCalls != 2 || l.Writes != 3 || l.RuntimeMs != 4 {
		t.Errorf("%+v and %+v", l, u)
	}
}

// TestCallInGraph: a call is shown by its function, or by what is known of it without one.
func TestCallInGraph(t *testing.T) {
	t.Parallel()
	for want, call := range map[string]approval.ShownCall{
		"transfer(address to, uint256 amount) of 0xaa": {Function: "transfer(address to, uint256 amount)",
			Selector: "0xa9059cbb", Target: "0xaa"},
		"unknown function 0xa9059cbb of 0xaa": {Selector: "0xa9059cbb", Target: "0xaa"},
		"unknown function 0xa9059cbb":         {Selector: "0xa9059cbb"},
		"plain transfer of 0xaa":              {Target: "0xaa"},
		"plain transfer":                      {},
	} {
		if got := callInGraph(call); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestVerificationInGraph: nothing stored is no verification, and what cannot be read is an error and none that passed.
func TestVerificationInGraph(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "null"} {
		if v, err := verificationInGraph(json.RawMessage(raw)); v != nil || err != nil {
			t.Errorf("%q: %+v, %v", raw, v, err)
		}
	}
	for _, raw := range []string{"{", `{"score":"high"}`, `{"checks":{}}`} {
		if v, err := verificationInGraph(json.RawMessage(raw)); v != nil || err == nil {
			t.Errorf("%q: %+v, %v", raw, v, err)
		}
	}
	v, err := verificationInGraph(json.RawMessage(
		`{"score":0.5,"checks":[{"name":"hash","passed":true},{"name":"size","passed":false,"details":"too small"}]}`))
	if err != nil || v.Score != 0.5 || len(v.Checks) != 2 || !v.Checks[0].Passed || v.Checks[0].Details != nil ||
		v.Checks[1].Passed || *v.Checks[1].Details != "too small" {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestPrivateReads: where reads are private, a caller without a token reads nothing, and no method asks the database
// for it: there is none here.
func TestPrivateReads(t *testing.T) {
	t.Parallel()
	r := New(nil, nil, true)
	reads := map[string]func(context.Context) error{
		"tasks":     func(ctx context.Context) error { _, err := r.Tasks(ctx, work.Filter{First: 1}); return err },
		"runs":      func(ctx context.Context) error { _, err := r.Runs(ctx, work.Filter{First: 1}); return err },
		"run":       func(ctx context.Context) error { _, err := r.Run(ctx, "run-1"); return err },
		"treasury":  func(ctx context.Context) error { _, err := r.Treasury(ctx); return err },
		"purchases": func(ctx context.Context) error { _, err := r.Purchases(ctx); return err },
		"agents":    func(ctx context.Context) error { _, err := r.AgentRuns(ctx, nil, 1, ""); return err },
	}
	for name, read := range reads {
		if err := read(t.Context()); err == nil {
			t.Errorf("%s: a caller without a token reads", name)
		}
	}
}
