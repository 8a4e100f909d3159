package oaf_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute/cmd/repute/internal/oaf"
)

func TestExportThenImport(t *testing.T) {
	for from, source := range map[string]string{"claude-code": "", "letta": "coordinator.af"} {
		dir := t.TempDir()
		out := must(t, "export", team+"coordinator", "--to", from, "--output", filepath.Join(dir, "project"))
		if !strings.Contains(out, "not carried: north/coordinator: orchestration: ") {
			t.Errorf("%s: the report is %s", from, out)
		}
		must(t, "import", filepath.Join(dir, "project", source), "--from", from, "--output",
			filepath.Join(dir, "agents"))
		must(t, "check", filepath.Join(dir, "agents/coordinator"))
		must(t, "check", filepath.Join(dir, "agents/reviewer"))
	}
	for _, to := range []string{"goose", "deep-agents"} {
		must(t, "export", team+"coordinator", "--to", to, "--output", filepath.Join(t.TempDir(), "p"))
	}
}

// A file of a stranger must not choose where its agent is written.
func TestImportStaysBelowItsDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, key := range []string{"..", "../x", "/x", `..\\x`} {
		file := filepath.Join(dir, "a.af")
		text := `{"agents":[{"id":"agent-0","name":"a","system":"x","metadata":{"oaf":{"agentKey":"` + key + `"}}}]}`
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := run("import", file, "--from", "letta", "--output", filepath.Join(dir, "o")); err == nil {
			t.Errorf("%s was written: %s", key, out)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("files %v, %v", entries, err)
	}
}

// An existing file is not replaced by an export, and a second one into the same directory is refused as a whole.
func TestExportReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, "export", team+"reviewer", "--to", "goose", "--output", dir)
	before := read(t, filepath.Join(dir, "AGENTS.md"))
	if out, err := run("export", team+"coordinator", "--to", "goose", "--output", dir); err == nil ||
		!strings.Contains(err.Error(), "another directory") {
		t.Errorf("%v: %s", err, out)
	}
	if read(t, filepath.Join(dir, "AGENTS.md")) != before {
		t.Error("a file was replaced")
	}
	if _, err := os.Stat(filepath.Join(dir, "recipes", "north-coordinator.yaml")); err == nil {
		t.Error("a refused export wrote a file")
	}
}

// An agent that cannot be read keeps no other one from being imported, and its error has a place and a fix.
func TestImportLeavesOutBrokenAgents(t *testing.T) {
	source := t.TempDir()
	agents := filepath.Join(source, ".claude", "agents")
	if err := errors.Join(os.MkdirAll(agents, 0o755),
		os.WriteFile(filepath.Join(agents, "a.md"),
			[]byte("---\nname: a\ndescription: Writes tests: all of them\n---\n\nWork.\n"), 0o600),
		os.WriteFile(filepath.Join(agents, "b.md"), []byte("---\nname: b\nskills: [\n---\n\nWork.\n"),
			0o600)); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "out")
	out, err := run("import", source, "--from", "claude-code", "--vendor", "acme", "--output", output, "--json")
	var c oaf.Carried
	if json.Unmarshal([]byte(out), &c) != nil || err == nil ||
		!strings.Contains(err.Error(), "1 agent with errors left out") {
		t.Fatalf("%v: %s", err, out)
	}
	if len(c.Problems) != 1 || c.Problems[0].Line == 0 || c.Problems[0].Hint == "" {
		t.Errorf("problems %+v", c.Problems)
	}
	if text := read(t, filepath.Join(output, "a", "AGENTS.md")); !strings.Contains(text, "Writes tests: all of them") {
		t.Errorf("the other agent: %s", text)
	}
}

// A conflict names the directory, which the caller may not have typed.
func TestConflictNamesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "reader")
	must(t, "new", dir, "--vendor", "acme")
	if _, err := run("new", dir, "--vendor", "acme"); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
}
