package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the tests' own binary be the node and the worker that benchmarks start.
func TestMain(m *testing.M) {
	if os.Getenv("REPUTE_RUN_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// product builds the binary that is measured.
func product(t *testing.T) string {
	t.Helper()
	t.Setenv("REPUTE_RUN_PROGRAM", "1")
	path := filepath.Join(t.TempDir(), "repute")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path,
		"repute/cmd/repute").CombinedOutput(); err != nil {
		t.Fatalf("build the product: %v\n%s", err, out)
	}
	return path
}

// What cannot be measured is refused before anything starts, with the flag and the fix.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"index", "--program", filepath.Join(t.TempDir(), "none")}, "make build"},
		{[]string{"index", "--speed", "9"}, "unknown flag: --speed"},
		{[]string{"speed"}, `unknown command "speed"`},
		{[]string{"runs", "--runs", "0"}, "runs: 0 leaves nothing to measure"},
		{[]string{"trust", "--curve", "1,x"}, "curve: x is no number of events"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), c.args, &stdout, &stderr); code != 2 || stdout.Len() > 0 ||
			!strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v: exit code %d, says %s%s", c.args, code, &stdout, &stderr)
		}
	}
}
