package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"repute/manifest/oaf"
	"repute/manifest/oaf/tree"
)

// referees returns the directory with the programs of others that scripts/oaf.sh installs.
func referees(t *testing.T) string {
	dir := os.Getenv("REPUTE_OAF_REFEREES")
	if dir == "" {
		t.Skip("the programs of others are installed by make test-oaf")
	}
	return dir
}

// exportsOf writes the exports of the team and of every template for a harness, and returns their directories.
func exportsOf(t *testing.T, to Target) []string {
	t.Helper()
	agents := []*oaf.Agent{team(t)}
	for _, kind := range oaf.Templates() {
		a, err := oaf.New(kind, "acme", "my-helper")
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, a)
	}
	var dirs []string
	for _, a := range agents {
		dir := t.TempDir()
		if err := tree.Write(dir, exported(t, a, to, Options{}).Files, false); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// run runs a program of others without the environment of the tests, and returns its lines.
func run(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		text := ""
		if failed, ok := err.(*exec.ExitError); ok {
			text = string(failed.Stderr)
		}
		t.Fatalf("%v: %v\n%s%s", args, err, out, text)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestSkillsOfOthersValidator(t *testing.T) {
	python := filepath.Join(referees(t), "venv/bin/python")
	for _, to := range []Target{ClaudeCode, Goose, DeepAgents} {
		dirs := exportsOf(t, to)
		for _, dir := range dirs {
			names := run(t, dir, python, filepath.Join(referees(t), "referees.py"), "skills", dir)
			if dir == dirs[0] && !slices.Contains(names, "summarize") {
				t.Errorf("%s: validated %v", to, names)
			}
		}
	}
}

func TestDeepAgentsOfOthers(t *testing.T) {
	python := filepath.Join(referees(t), "venv/bin/python")
	for i, dir := range exportsOf(t, DeepAgents) {
		names := run(t, dir, python, filepath.Join(referees(t), "referees.py"), "deep-agents", dir)
		want := []string{"skill plain-notes", "skill summarize", "agent north-reviewer", "graph coordinator"}
		if i == 0 && !slices.Equal(names, want) {
			t.Errorf("loaded %q", names)
		}
	}
}

func TestRecipesOfOthersTemplates(t *testing.T) {
	python := filepath.Join(referees(t), "venv/bin/python")
	for i, dir := range exportsOf(t, Goose) {
		names := run(t, dir, python, filepath.Join(referees(t), "referees.py"), "goose", dir)
		if i == 0 && !slices.Equal(names, []string{"north-coordinator", "north-reviewer"}) {
			t.Errorf("rendered %q", names)
		}
	}
}

func TestLettaOfOthersSchema(t *testing.T) {
	args := []string{filepath.Join(referees(t), "letta/bin/python"), filepath.Join(referees(t), "letta_file.py")}
	dirs := exportsOf(t, Letta)
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.af"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%d agent files: %v", len(files), err)
		}
		args = append(args, files...)
	}
	names := run(t, dirs[0], args...) // once for all: the import of the schema takes half a minute
	want := []string{"north-coordinator", "north-reviewer", "skill plain-notes", "skill summarize"}
	if len(names) < len(want) || !slices.Equal(names[:len(want)], want) || !slices.Contains(names, "acme-my-helper") {
		t.Errorf("accepted %q", names)
	}
}

// Claude Code says what it loaded before it asks a model, whose address is closed here.
func TestClaudeCodeOfOthers(t *testing.T) {
	program := filepath.Join(referees(t), "node_modules/.bin/claude")
	dir := exportsOf(t, ClaudeCode)[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-p", "hi", "--output-format", "stream-json", "--verbose", "--max-turns", "1")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=none",
		"ANTHROPIC_BASE_URL=http://127.0.0.1:1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	cancel()
	_ = cmd.Wait() // it was told to stop
	var loaded struct {
		Subtype        string
		Agents, Skills []string
		Servers        []struct{ Name string } `json:"mcp_servers"`
	}
	if err != nil || json.Unmarshal(line, &loaded) != nil || loaded.Subtype != "init" {
		t.Fatalf("said %q: %v", line, err)
	}
	for _, name := range []string{"north-coordinator", "north-reviewer"} {
		if !slices.Contains(loaded.Agents, name) {
			t.Errorf("agents %v lack %s", loaded.Agents, name)
		}
	}
	for _, name := range []string{"north-coordinator", "north-reviewer", "plain-notes", "summarize"} {
		if !slices.Contains(loaded.Skills, name) {
			t.Errorf("skills %v lack %s", loaded.Skills, name)
		}
	}
	if len(loaded.Servers) != 1 || loaded.Servers[0].Name != "files" {
		t.Errorf("servers %v", loaded.Servers)
	}
}
