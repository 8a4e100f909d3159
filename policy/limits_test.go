package policy_test

import (
	"errors"
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
		"maxOnchainWrites": {OnchainWrites: &large}, "maxGasWei": {GasWei: strings.Repeat("9", 80)}} {
		if err := b.Check(); !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (policy.Bounds{Steps: &most, GasWei: strings.Repeat("9", 77)}).Check(); err != nil {
		t.Error(err)
	}
}
