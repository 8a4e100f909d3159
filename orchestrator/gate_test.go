package orchestrator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator/trustgate"
	"repute/policy"
	"repute/store/scoredb"
)

// A stored decision holds only while all that the policy saw of the agent follows from
// what is pinned.
func TestGateDecisionFollowsFromItsPin(t *testing.T) {
	t.Parallel()
	h, _ := newHouse(t)
	p := rules(t, "version: \"1\"\n")()
	_, err := scoredb.KeepInput(t.Context(), h.db, p.Text())
	ok(t, err)
	task := policy.Task{Coordinator: "plain", Value: "0", Budget: policy.DefaultBudget()}
	least := 10.0
	v, err := trustgate.Decide(t.Context(), h.db, p, true, repute.Module{Slug: "plain"}, task,
		policy.Threshold{MinReputation: &least})
	ok(t, err)
	if v.Decision.Effect != policy.Deny {
		t.Fatalf("an unknown agent: %+v", v.Decision)
	}
	ok(t, trustgate.Verify(t.Context(), h.db, nil, v))
	if r := v.Decision.Reasons[0]; !strings.Contains(r.Text, "has no identity") {
		t.Errorf("an agent that is not registered: %+v", r)
	}
	older := v // told in the words of another version
	older.Decision.Reasons = slices.Clone(v.Decision.Reasons)
	older.Decision.Reasons[0].Text = "nobody vouches for whoever rated the agent"
	ok(t, trustgate.Verify(t.Context(), h.db, nil, older))
	for name, forge := range map[string]func(*trustgate.Decision){
		"another status": func(v *trustgate.Decision) {
			v.Agent.Status, v.Agent.Score, v.Agent.Low = policy.StatusRated,
				80, 70
		},
		"another identity": func(v *trustgate.Decision) { v.Agent.IdentityExists, v.Agent.Trust01 = true, 1 },
		"another decision": func(v *trustgate.Decision) { v.Decision.Effect = policy.Allow },
		"another reason": func(v *trustgate.Decision) {
			v.Decision.Reasons = slices.Clone(v.Decision.Reasons)
			v.Decision.Reasons[0].Need = "unrated"
		},
	} {
		forged := v
		forge(&forged)
		if err := trustgate.Verify(t.Context(), h.db, nil, forged); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
