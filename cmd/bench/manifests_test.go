package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"repute/internal/bench/harness"
)

// TestManifests makes a small run of bench manifests: each target has its value and limit.
func TestManifests(t *testing.T) {
	var stdout, stderr bytes.Buffer
	run(t.Context(), []string{"manifests", "--json", "--manifests", "100", "--intents", "1000", "--queries", "5",
		"--texts", "20",
		"--hosts", "0"},
		&stdout, &stderr)
	var r harness.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || r.Name != "manifests" || len(r.Targets) != 3 {
		t.Fatalf("%v: %s%s", err, &stdout, &stderr)
	}
	for _, target := range r.Targets {
		if target.Value <= 0 || target.Limit <= 0 {
			t.Errorf("%+v", target)
		}
	}
	stdout.Reset()
	if code := run(t.Context(), []string{"manifests", "--intents", "0"}, &stdout, &stderr); code == 0 {
		t.Error("no intents were searched")
	}
}
