package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"repute/internal/bench"
	"repute/internal/bench/harness"
)

// The benchmark of documents runs and says all of what is promised. How fast it was is
// not judged here.
func TestBenchDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("reads documents from slow hosts")
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"documents", "--json", "--program", product(t), "--documents", "200", "--hosts",
		"40"}, &stdout, &stderr)
	if code > 1 {
		t.Fatalf("exit code %d:\n%s", code, &stderr)
	}
	var report struct {
		Name         string
		Machine      harness.Machine
		Measurements bench.DocumentsMeasurements
		Targets      []harness.Target
	}
	dec := json.NewDecoder(&stdout)
	if err := dec.Decode(&report); err != nil || dec.More() {
		t.Fatalf("standard output is not one JSON value: %v\n%s", err, &stderr)
	}
	m := report.Measurements
	if report.Name != "documents" || report.Machine.Postgres == "" || m.Data.Documents != 200 || m.Data.CPUs != 1 ||
		m.Data.PostgresCPU <= 0 {
		t.Errorf("got %+v", report)
	}
	if m.Live.Documents != 190 || m.Live.Dead != 0 || m.Web.Documents != 190 || m.Web.Dead != 10 {
		t.Errorf("without dead hosts %+v, with them %+v", m.Live, m.Web)
	}
	if m.Crowd.Documents != 190 || m.Crowd.Dead < 5*256 {
		t.Errorf("with more dead hosts %+v", m.Crowd)
	}
	for _, r := range []bench.DocumentsRun{m.Live, m.Web, m.Crowd} {
		if r.Ideal <= 0 || r.Seconds < r.Ideal || r.AtOnce == 0 || r.AtOnce > 2*38 {
			t.Errorf("read in %.2f s, ideal %.2f s, with %d requests at once", r.Seconds, r.Ideal, r.AtOnce)
		}
	}
	missed := false
	for _, target := range report.Targets {
		missed = missed || !target.OK
	}
	if len(report.Targets) != 6 || missed != (code == 1) {
		t.Errorf("exit code %d for %+v", code, report.Targets)
	}
}

// What cannot be measured is refused by its flag's name.
func TestBenchDocumentsRefuses(t *testing.T) {
	for _, args := range [][]string{{"--hosts", "19"}, {"--documents", "100"}, {"--documents", "0"},
		{"--hosts", "-1"}} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"documents", "--program", os.Args[0]}, args...), &stdout, &stderr)
		if code != 2 || !bytes.Contains(stderr.Bytes(), []byte(args[0][2:])) || stdout.Len() > 0 {
			t.Errorf("%v: exit code %d: %s", args, code, &stderr)
		}
	}
}
