package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/policy"
)

// A bound that cannot be stored is refused by its name.
func TestBoundsThatNoRunCanHave(t *testing.T) {
	t.Parallel()
	large, most := int64(1<<31), int64(1<<31-1)
	for name, b := range map[string]policy.Bounds{"maxSteps": {Steps: &large}, "maxToolCalls": {ToolCalls: &large},
		"maxRuntimeMs":     {RuntimeMS: &large},
		"maxOnchainWrites": {OnchainWrites: &large}, "maxGasWei": {GasWei: strings.Repeat("9", 80)},
		"maxTokens": {Tokens: new(int64(0))}, "maxCostUsd": {CostUSD: "0.0000001"}} {
		if err := b.Check(); !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (policy.Bounds{Steps: &most, GasWei: strings.Repeat("9", 77)}).Check(); err != nil {
		t.Error(err)
	}
}

// Where a policy bounds language models, a task must name its own bound, within the policy's.
func TestModelLimits(t *testing.T) {
	t.Parallel()
	p := parse(t, "limits: {maxTokens: 100, maxCostUsd: \"0.5\"}\n")
	for name, c := range map[string]struct {
		tokens int64
		cost   string
		deny   string
	}{"within": {100, "0.50", ""}, "tokens": {101, "0.1", "limit.maxTokens"},
		"cost":     {1, "0.500001", "limit.maxCostUsd"},
		"no bound": {0, "0.5", "limit.maxTokens"}, "no cost": {1, "", "limit.maxCostUsd"}} {
		in := input()
		in.Task.Budget.Tokens, in.Task.Budget.CostUSD = c.tokens, c.cost
		d := p.Decide(t.Context(), in)
		denied := slices.ContainsFunc(d.Reasons, func(r policy.Reason) bool { return r.ID == c.deny })
		if c.deny == "" && d.Effect == policy.Deny || c.deny != "" && !denied {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if b := p.Budget(policy.Bounds{}); b.Tokens != 100 || b.CostUSD != "0.5" {
		t.Errorf("the budget of a task without bounds: %+v", b)
	}
}
