package rating

import (
	"errors"
	"strings"
	"testing"

	"repute"
)

// Parameters that cannot be meant are refused by line and field, without Go's names.
func TestParamsAreRefused(t *testing.T) {
	t.Parallel()
	params, tags := DefaultFiles()
	for _, c := range []struct{ old, with, field, line string }{
		{`"guard": {"below": -10, "known": 1.25, "fullShare": 0.25, "tailDays": 7},`, ``, "params: guard.below",
			"missing"},
		{`"epoch": {"blocks": 1800`, `"epoch": {"blocs": 1800`, "params: blocs", "line 25: no such field"},
		{`"epoch": {"blocks": 1800`, `"epoch": {"blocks": 0`, "params: epoch.blocks", "line 25"},
		{`["quality", "validation"]`, `["quality", "beauty"]`, "params: gates[1].channels[1]", "line 13"},
		{`"low": 50`, `"low": 101`, "params: gates[0].low", "line 12"},
		{`"high": -50`, `"high": -101`, "params: gates[3].high", "line 15"},
		{`"low": 50`, `"low": 50, "high": 3`, "params: gates[0]", "line 12"},
		{`"checks": [`, `"checks": ["beauty", `, "params: gates[4].checks[0]", "line 16"},
		{`"checks": [`, `"checks": ["domainsProven", `, "params: gates[4].checks[3]", "line 16"},
		{`"checks": [`, `"paths": 2, "checks": [`, "params: gates[4]", "line 16"},
		{`"low": 50, "paths": 3`, `"paths": 3`, "params: gates[0]", "line 12"},
		{`"id": "validator"`, `"id": "service"`, "params: gates[1].id", "line 13"},
		{`{"tier": 3, "gate": "service"}`, `{"tier": 3, "gate": "servise"}`, "params: tiers[2].gate", "line 21"},
		{`"minWeight": 0.01`, `"minWeight": 1e-06`, "params: paths.minWeight", "line 8: 1e-06"},
		{`"iterations": 60`, `"iterations": 60.5`, "params: walk.iterations", "line 3"},
		{`"iterations": 60`, `"iterations": "60"`, "params: walk.iterations", "line 3"},
		{`"restart": 0.2`, `"restart": "0.2"`, "params: walk.restart", "line 3: string"},
		{`"restart": 0.2`, `"restart": 0.2, "restart": 0.3`, "params: walk.restart", "line 3: stands twice"},
		{`"version": "repute-4",`, `"version": "repute-4"`, "params", "line 3: not JSON"},
	} {
		if !strings.Contains(string(params), c.old) {
			t.Fatalf("params.json has no %s", c.old)
		}
		_, err := ParseParams([]byte(strings.Replace(string(params), c.old, c.with, 1)), tags)
		var wrong *repute.InputError
		if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Field, c.field) ||
			!strings.Contains(wrong.Reason, c.line) ||
			wrong.Hint == "" ||
			strings.Contains(err.Error(), "rating.") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %s and %s", c.with, err, c.field, c.line)
		}
	}
	for _, part := range []string{"gates", "tiers", "epoch", "guard"} {
		_, err := ParseParams([]byte(strings.Replace(string(params), `"`+part+`"`, `"x`+part+`"`, 1)), tags)
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("without %s: %v", part, err)
		}
	}
}
