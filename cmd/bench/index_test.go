package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"repute/internal/bench"
	"repute/internal/bench/harness"
)

// The benchmark of indexing runs, says what it found in the form that is promised,
// and finds the index exact. How fast it was is not judged here.
func TestBenchIndex(t *testing.T) {
	if testing.Short() {
		t.Skip("indexes twenty thousand events several times")
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"index", "--json", "--program", product(t), "--events", "20000", "--modes",
		"clean", "--runs", "1", "--curve", "",
		"--busy", "2000", "--dir", t.TempDir()}, &stdout, &stderr)
	if code > 1 {
		t.Fatalf("exit code %d:\n%s", code, &stderr)
	}
	var report struct {
		Name         string
		Machine      harness.Machine
		Measurements bench.IndexMeasurements
		Targets      []harness.Target
	}
	dec := json.NewDecoder(&stdout)
	if err := dec.Decode(&report); err != nil {
		t.Fatalf("standard output is not one JSON value: %v\n%s", err, &stderr)
	}
	if dec.More() {
		t.Error("something follows the report on standard output")
	}
	checkIndexReport(t, report.Measurements, report.Targets, code)
	if report.Name != "index" || report.Machine.CPUs == 0 || report.Machine.Postgres == "" ||
		report.Machine.Settings["fsync"] != "on" {
		t.Errorf("got name %q, machine %+v", report.Name, report.Machine)
	}
}

// The curve ends where the history does.
func TestCurveEndsWithTheHistory(t *testing.T) {
	t.Parallel()
	for most, want := range map[int][]int{50: {50}, 100: {100}, 2000: {100, 1000, 2000},
		5000: {100, 1000, 3000, 5000}} {
		if got := upTo([]int{100, 1000, 3000}, most); !slices.Equal(got, want) {
			t.Errorf("up to %d: %v, want %v", most, got, want)
		}
	}
}

func checkIndexReport(t *testing.T, m bench.IndexMeasurements, targets []harness.Target, code int) {
	t.Helper()
	clean := m.Modes["clean"]
	if clean.Events != 20_000 || len(clean.Runs) != 1 || m.Busy == nil || m.Yardsticks.FinalRows < clean.Events {
		t.Fatalf("got %+v", m)
	}
	run := clean.Runs[0]
	if !run.Exact || run.Difference != "" {
		t.Errorf("the index differs from the history: %s", run.Difference)
	}
	if run.Calls["eth_getLogs"] == 0 || run.Seconds <= 0 || m.Yardsticks.FinalMedian <= 0 ||
		m.Yardsticks.RawMedian <= 0 {
		t.Errorf("got %+v and %+v", run, m.Yardsticks)
	}
	// A batch counts as its calls; the fixed ones weigh much in so short a history.
	const most = 30
	if run.CallsPer2000 > most {
		t.Errorf("%.1f calls per 2,000 events, at most %d expected", run.CallsPer2000, most)
	}
	missed := false
	for _, target := range targets {
		missed = missed || !target.OK
	}
	if len(targets) < 6 || missed != (code == 1) {
		t.Errorf("exit code %d for %d targets, one missed: %v", code, len(targets), missed)
	}
}
