package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"repute/internal/bench/agentbench"
)

// TestAgent makes a small run of bench agent: nothing is lost or doubled by kills, each target has its
// value and limit, and everything was measured.
func TestAgent(t *testing.T) {
	t.Setenv("REPUTE_RUN_PROGRAM", "1")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"agent", "--json", "--requests", "40", "--at-once", "10", "--paid", "120",
		"--kills", "2"},
		&stdout, &stderr)
	var r struct {
		Measurements agentbench.Measurements
		Targets      []struct {
			Name         string
			Value, Limit float64
			OK           *bool
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s%s", err, &stdout, &stderr)
	}
	m := &r.Measurements
	if k := m.Kills; k.Calls != 120 || k.Settled != 120 || k.Lost+k.Doubled != 0 || k.Kills == 0 {
		t.Errorf("%+v", k)
	}
	if m.Serial.Free.Count != 40 || m.AtOnce.Paid.Count != 40 || m.AtOnce.Before.P99 <= 0 ||
		m.AtOnce.Health.Count == 0 ||
		m.AtOnce.Ratio <= 0 {
		t.Errorf("%+v", m)
	}
	missed := false
	for _, target := range r.Targets {
		missed = missed || target.OK == nil || !*target.OK
	}
	if len(r.Targets) != 7 || missed != (code != 0) {
		t.Errorf("exit code %d, targets %+v", code, r.Targets)
	}
}
