package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"repute/internal/modeltest"
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
	for _, kind := range []oaf.Template{oaf.TemplateMinimal, oaf.TemplateSubAgent, oaf.TemplateFull} {
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

// Deep Agents loads and runs every export: the scripted model gives work to a sub-agent where there is one.
func TestDeepAgentsOfOthers(t *testing.T) {
	python := filepath.Join(referees(t), "venv/bin/python")
	for i, dir := range exportsOf(t, DeepAgents) {
		model := &modeltest.Server{Script: func(n int, r *modeltest.Request) modeltest.Turn {
			switch {
			case r.Contains("You review changes."):
				return modeltest.Turn{Text: "no finding"}
			case n == 0 && i == 0:
				return modeltest.Turn{Calls: []modeltest.Call{{Name: "task",
					Input: `{"description":"Review it.","subagent_type":"north-reviewer"}`}}}
			}
			return modeltest.Turn{Text: "forty-two"}
		}}
		server := httptest.NewServer(model)
		t.Cleanup(server.Close)
		names := run(t, dir, python, filepath.Join(referees(t), "referees.py"), "deep-agents", dir, server.URL)
		if len(names) == 0 || !strings.HasSuffix(names[len(names)-1], "says forty-two") {
			t.Errorf("loaded and ran %q", names)
		}
		want := []string{"skill plain-notes", "skill summarize", "agent north-reviewer", "coordinator says forty-two"}
		if i > 0 {
			continue
		}
		asked := model.Seen()
		if !slices.Equal(names, want) || len(asked) != 3 ||
			!asked[0].Contains("I coordinate the review of a change.") ||
			!asked[0].Contains("summarize") || !asked[2].Contains("no finding") {
			t.Errorf("loaded %q, %d requests", names, len(asked))
		}
	}
}

// recipes returns the recipes of an export, in order.
func recipes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "recipes", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recipes: %v", len(files), err)
	}
	return files
}

// Goose itself accepts every recipe, and renders the prompt of the agent out of the template.
func TestGooseOfOthersAcceptsRecipes(t *testing.T) {
	program := filepath.Join(referees(t), "node_modules/.bin/goose")
	for _, dir := range exportsOf(t, Goose) {
		for _, file := range recipes(t, dir) {
			if said := run(t, dir, program, "recipe", "validate", file); !strings.Contains(said[len(said)-1], "valid") {
				t.Errorf("%s: %q", file, said)
			}
		}
	}
	a := team(t)
	a.Body += "\n{{ x }} {% if y %} {# z #} }} %} {{{ a }}} {{ '{{' }}"
	dir := t.TempDir()
	if err := tree.Write(dir, exported(t, a, Goose, Options{}).Files, false); err != nil {
		t.Fatal(err)
	}
	var recipe struct {
		Title, Instructions string
		Extensions          []struct {
			Name  string
			Tools []string `yaml:"available_tools"`
		}
		SubRecipes []struct{ Name string } `yaml:"sub_recipes"`
	}
	text := run(t, dir, program, "run", "--recipe", "recipes/north-coordinator.yaml", "--render-recipe")
	if err := yaml.Unmarshal([]byte(strings.Join(text, "\n")), &recipe); err != nil {
		t.Fatal(err)
	}
	if recipe.Instructions != prompt(a) || recipe.Title != a.Name {
		t.Errorf("rendered %q, want %q", recipe.Instructions, prompt(a))
	}
	if len(recipe.Extensions) < 2 || recipe.Extensions[0].Name != "developer" || recipe.Extensions[1].Name != "files" ||
		!slices.Equal(recipe.Extensions[1].Tools,
			[]string{"read_file", "list_directory"}) { // Goose adds some of its own
		t.Errorf("extensions %+v", recipe.Extensions)
	}
	if len(recipe.SubRecipes) != 1 || recipe.SubRecipes[0].Name != "north_reviewer" {
		t.Errorf("sub-recipes %+v", recipe.SubRecipes)
	}
}

// Goose runs an exported recipe: the scripted model is asked with the agent's instructions, and the agent's skills are
// offered to it. A recipe has no first message of the user, which Goose needs where nobody types.
func TestGooseOfOthersRunsARecipe(t *testing.T) {
	program := filepath.Join(referees(t), "node_modules/.bin/goose")
	model := modeltest.New(modeltest.Turn{Text: "forty-two"})
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	a := team(t)
	a.Servers, a.Model, a.Config.Temperature = nil, oaf.Model{}, nil
	a.Body += "\nBraces such as {{ x }} stay."
	dir, home := t.TempDir(), t.TempDir()
	if err := tree.Write(dir, exported(t, a, Goose, Options{}).Files, false); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "recipes", "north-coordinator.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(text, "prompt: What is the answer?\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", "--recipe", file, "--no-session", "--quiet", "--max-turns", "2")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GOOSE_PROVIDER=openai", "GOOSE_MODEL=scripted",
		"OPENAI_HOST=" + server.URL, "OPENAI_API_KEY=none", "GOOSE_DISABLE_KEYRING=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "forty-two") {
		t.Fatalf("%v: %s", err, out)
	}
	asked := model.Seen()
	if !slices.ContainsFunc(asked, func(r *modeltest.Request) bool {
		return r.Contains("Braces such as {{ x }} stay.") && r.Contains("What is the answer?") &&
			r.Contains("summarize")
	}) {
		t.Errorf("%d requests, none has the agent's instructions and skills", len(asked))
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
	cmd := exec.CommandContext(ctx, program, "-p", "hi", "--output-format", "stream-json", "--verbose",
		"--max-turns", "1")
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
