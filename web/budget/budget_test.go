package budget

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLines: what is used is shown of each limit, and what has no limit says so.
func TestLines(t *testing.T) {
	t.Parallel()
	tokens, gas, used := int64(100), "2000", "500"
	limits := Amounts{Steps: 10, RuntimeMs: 60_000, GasWei: &gas, Tokens: &tokens}
	lines := map[string]Line{}
	for _, l := range Lines(limits, &Amounts{Steps: 5, GasWei: &used, CostUsd: &used}) {
		lines[l.Name] = l
	}
	if l := lines["Steps"]; l.Share != .5 || l.Used != "5" || l.Limit != "10" {
		t.Errorf("%+v", l)
	}
	if l := lines["Gas"]; l.Share != .25 || l.Limit != "2\u202f000 wei" {
		t.Errorf("%+v", l)
	}
	if l := lines["Cost of models"]; l.Share >= 0 || l.Limit != "no limit" {
		t.Errorf("%+v", l)
	}
	if l := lines["Tokens of models"]; l.Share != 0 || l.Limit != "100" {
		t.Errorf("%+v", l)
	}
}

// TestPartsOfLimits: parts of limits stay within 0 and 1, and say where there is no limit.
func TestPartsOfLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if p := part(rapid.Float64().Draw(t, "used"), rapid.Float64().Draw(t, "limit")); !(p >= 0 && p <= 1) {
			t.Fatal(p)
		}
	})
	if got := partOf(nil, nil); got != -1 {
		t.Errorf("without a limit: %v", got)
	}
}
