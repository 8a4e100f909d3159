package harness

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

var update = flag.Bool("update", false, "write the goldens instead of comparing them")

// targets returns all harnesses that agents are exported for.
func targets() []Target { return []Target{ClaudeCode, Goose, DeepAgents, Letta} }

// team loads the agent of the format's testdata with its reviewer.
func team(t testing.TB) *oaf.Agent {
	t.Helper()
	a, problems := oaf.Load(os.DirFS("../testdata/team"), "coordinator", problem.Lenient)
	if p, bad := repute.FirstError(problems); a == nil || bad {
		t.Fatalf("load: %+v", p)
	}
	return a
}

// golden returns an export as one text: the report, then each file.
func golden(out Result) string {
	var b strings.Builder
	for _, l := range out.Notes {
		fmt.Fprintf(&b, "%s %s: %s\n", l.Agent, l.Field, l.Reason)
	}
	for _, f := range out.Files {
		fmt.Fprintf(&b, "=== %s", f.Path)
		if f.Executable {
			b.WriteString(" (executable)")
		}
		fmt.Fprintf(&b, "\n%s", f.Data)
	}
	return b.String()
}

func TestGoldens(t *testing.T) {
	for _, target := range targets() {
		for _, layout := range []Layout{LayoutLoaded, LayoutText} {
			name := string(target) + "-" + string(layout)
			t.Run(name, func(t *testing.T) {
				out, err := Export(team(t), target, Options{Layout: layout})
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", name+".txt")
				got := golden(out)
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				want, err := os.ReadFile(file)
				if err != nil || string(want) != got {
					t.Errorf("%s differs (run with -update): %v\n%s", file, err, got)
				}
			})
		}
	}
}

// find returns the text of a file of an export.
func find(t *testing.T, out Result, name string) string {
	t.Helper()
	at := slices.IndexFunc(out.Files, func(f tree.File) bool { return f.Path == name })
	if at < 0 {
		t.Fatalf("there is no %s", name)
	}
	return string(out.Files[at].Data)
}

func exported(t *testing.T, a *oaf.Agent, to Target, o Options) Result {
	t.Helper()
	out, err := Export(a, to, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The harnesses look only where the loaded layout puts files.
func TestPlacesThatHarnessesLoad(t *testing.T) {
	for _, tc := range []struct {
		to     Target
		layout Layout
		file   string
	}{
		{ClaudeCode, LayoutLoaded, ".claude/agents/north-coordinator.md"},
		{ClaudeCode, LayoutLoaded, ".claude/skills/north-coordinator/SKILL.md"},
		{ClaudeCode, LayoutLoaded, ".claude/skills/summarize/scripts/count.sh"},
		{ClaudeCode, LayoutLoaded, ".mcp.json"},
		{ClaudeCode, LayoutText, ".claude/skills/north/coordinator/SKILL.md"},
		{Goose, LayoutLoaded, "AGENTS.md"},
		{Goose, LayoutLoaded, ".agents/skills/north-reviewer/SKILL.md"},
		{Goose, LayoutLoaded, "recipes/north-coordinator.yaml"},
		{Goose, LayoutText, ".config/goose/extensions/north/coordinator/AGENTS.md"},
		{DeepAgents, LayoutLoaded, ".deepagents/coordinator/AGENTS.md"},
		{DeepAgents, LayoutLoaded, ".deepagents/coordinator/agent.md"},
		{DeepAgents, LayoutLoaded, ".deepagents/coordinator/agents/north-reviewer/AGENTS.md"},
		{DeepAgents, LayoutText, ".deepagents/coordinator/agent.md"},
		{Letta, LayoutLoaded, "coordinator.af"},
	} {
		find(t, exported(t, team(t), tc.to, Options{Layout: tc.layout}), tc.file)
	}
	text := exported(t, team(t), DeepAgents, Options{Layout: LayoutText})
	if slices.ContainsFunc(text.Files,
		func(f tree.File) bool { return f.Path == ".deepagents/coordinator/AGENTS.md" }) {
		t.Error("the layout of the text has AGENTS.md as well")
	}
}

// A recipe is a template of Jinja: after its expressions are evaluated, the instructions must be the prompt.
func TestRecipeEscapesTemplates(t *testing.T) {
	a := team(t)
	a.Body += "\n{{ x }} {% if y %} {# z #} }} %} {{{ a }}}"
	var recipe struct {
		Instructions string
		Extensions   []map[string]any
		SubRecipes   []map[string]string `yaml:"sub_recipes"`
	}
	out := exported(t, a, Goose, Options{})
	if err := yaml.Unmarshal([]byte(find(t, out, "recipes/north-coordinator.yaml")), &recipe); err != nil {
		t.Fatal(err)
	}
	rendered := strings.NewReplacer("{{ '{{' }}", "{{", "{{ '{%' }}", "{%", "{{ '{#' }}",
		"{#").Replace(recipe.Instructions)
	if rendered != prompt(a) {
		t.Errorf("rendered %q", rendered)
	}
	open := strings.NewReplacer("{{ '{{' }}", "", "{{ '{%' }}", "", "{{ '{#' }}", "").Replace(recipe.Instructions)
	if strings.Contains(open, "{{") || strings.Contains(open, "{%") || strings.Contains(open, "{#") {
		t.Errorf("a template is left in %q", open)
	}
	if tools := fmt.Sprint(recipe.Extensions[1]["available_tools"]); tools != "[read_file list_directory]" {
		t.Errorf("available tools %s", tools)
	}
	if len(recipe.SubRecipes) != 1 || recipe.SubRecipes[0]["path"] != "./north-reviewer.yaml" {
		t.Errorf("sub-recipes %v", recipe.SubRecipes)
	}
}

// No harness may get a secret that is in the open.
func TestSecretsAreNotCarried(t *testing.T) {
	for _, target := range targets() {
		a := team(t)
		a.Servers[0].Auth.Token = "s3cret"
		out := exported(t, a, target, Options{})
		if strings.Contains(golden(out), "s3cret") {
			t.Errorf("%s has the secret", target)
		}
		if !slices.ContainsFunc(out.Notes, func(l Note) bool { return l.Field == "mcp-configs.auth" }) {
			t.Errorf("%s does not report the secret", target)
		}
	}
}

func TestSkillsOfOneName(t *testing.T) {
	a := team(t)
	sub := a.Agents[0].Local
	sub.LocalSkills = []skill.Skill{{Dir: "summarize", Name: "summarize", Description: "Another one.", Body: "Other."}}
	out := exported(t, a, ClaudeCode, Options{})
	first, second := find(t, out, ".claude/skills/summarize/SKILL.md"), find(t, out,
		".claude/skills/summarize-2/SKILL.md")
	if !strings.Contains(first, "Write three lines.") || !strings.Contains(second, "Other.") {
		t.Errorf("skills %q and %q", first, second)
	}
	sub.LocalSkills = slices.Clone(a.LocalSkills[:1])
	if out := exported(t, a, ClaudeCode, Options{}); len(out.Files) != len(exported(t, team(t), ClaudeCode,
		Options{}).Files) {
		t.Error("one skill of two agents is written twice")
	}
}

func TestWrongRequestsAreRefused(t *testing.T) {
	for _, err := range []error{
		second(Export(team(t), "emacs", Options{})),
		second(Export(team(t), Goose, Options{Layout: "flat"})),
		second(Export(&oaf.Agent{Body: "x"}, Goose, Options{})),
		second(FromLetta([]byte(`{"agent_type":"memgpt_agent","core_memory":[]}`))),
		second(FromLetta([]byte(`[`))),
		second(FromClaudeCode(os.DirFS("testdata"))),
	} {
		if err == nil || !strings.Contains(err.Error(), "(") {
			t.Errorf("error %v", err)
		}
	}
	for want, err := range map[string]error{
		`to: "emacs" is unknown (claude-code, goose, deep-agents or letta)`: second(Export(team(t), "emacs",
			Options{})),
		`layout: "flat" is unknown (loaded or text)`: second(Export(team(t), Goose,
			Options{Layout: "flat"})),
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func second[V any](_ V, err error) error { return err }

// Denied tools of another type are an error of the import: the imported agent would deny nothing.
func TestImportOfDeniedToolsOfAnotherType(t *testing.T) {
	for _, denied := range []string{"{Bash: true}", "[{name: Bash}]", "true"} {
		fsys, err := tree.FS([]tree.File{{Path: ".claude/agents/deploy.md",
			Data: []byte("---\nname: deploy\ndescription: Deploys.\ndisallowedTools: " + denied +
				"\n---\n\nDeploy it.\n")}})
		if err != nil {
			t.Fatal(err)
		}
		all, err := FromClaudeCode(fsys)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %d agents, %v", denied, len(all), err)
		}
		if p, bad := repute.FirstError(all[0].Problems); !bad || p.Code != problem.CodeRestriction {
			t.Errorf("%s: %+v, denied %q", denied, all[0].Problems, all[0].Agent.Config.Denied)
		}
	}
}

func TestImportOfAForeignProject(t *testing.T) {
	fsys, err := tree.FS([]tree.File{
		{Path: ".claude/agents/deploy.md",
			Data: []byte("---\nname: deploy\ndescription: Deploys.\ntools: Read, mcp__kube__get\n" +
				"disallowedTools: Bash, mcp__kube__delete\nmodel: opus\nskills:\n" +
				"  - roll\n  - ../../etc\nmcpServers:\n  - kube\n---\n\nDeploy it.\n")},
		{Path: ".claude/skills/roll/SKILL.md", Data: []byte("---\nname: roll\ndescription: Rolls back.\n---\nRoll.\n")},
		{Path: ".mcp.json",
			Data: []byte(`{"mcpServers":{"kube":{"command":"kube-mcp","args":["-r"],"env":{"K":"${KUBE}"}}}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	in, err := FromClaudeCode(fsys)
	if err != nil || len(in) != 1 {
		t.Fatalf("%d agents: %v", len(in), err)
	}
	a := in[0].Agent
	s := a.Servers[0]
	if a.AgentKey != "deploy" || a.Model.Alias != "opus" || !slices.Equal(a.Tools, []string{"Read"}) ||
		!a.Denies("Bash") ||
		len(a.LocalSkills) != 1 || !s.Selection.Allows("get") || s.Selection.Allows("delete") ||
		s.Selection.Allows("put") ||
		s.Connection.Type != oaf.TransportStdio || a.Body != "Deploy it." {
		t.Errorf("agent %+v", a)
	}
	has(t, in[0].Notes, `dropped deploy skills: "../../etc" is no skill`)
}

// dataDir returns the directory of recorded data, which is not part of this repository.
func dataDir(t *testing.T) string {
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	dir = filepath.Join(dir, "oaf")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("test data absent: %v", err)
	}
	return dir
}

// The reference exports of the format's examples must be understood, and the exports of the examples must have the same
// files.
func TestReferenceExports(t *testing.T) {
	dir := dataDir(t)
	in, err := FromClaudeCode(os.DirFS(filepath.Join(dir, "exports-reference/claude-code")))
	if err != nil || in[0].Agent.ID() != "acme/code-reviewer" || !slices.Equal(in[0].Agent.Tools, []string{"Read",
		"Glob", "Grep"}) {
		t.Fatalf("claude-code: %v, %v", in, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "exports-reference/letta/code-reviewer.af"))
	if err != nil {
		t.Fatal(err)
	}
	in, err = FromLetta(b)
	if err != nil || in[0].Agent.Slug != "acme/code-reviewer" || len(in[0].Agent.Memory.Blocks) != 2 {
		t.Fatalf("letta: %v, %v", in, err)
	}
	a, problems := oaf.Load(os.DirFS(filepath.Join(dir, "seed-examples")), "code-reviewer", problem.Lenient)
	if p, bad := repute.FirstError(problems); bad {
		t.Fatalf("the example has an error: %+v", p)
	}
	for target, files := range map[Target][]string{
		ClaudeCode: {".claude/agents/acme-code-reviewer.md", ".claude/skills/acme-code-reviewer/SKILL.md"},
		Goose:      {".agents/skills/acme-code-reviewer/SKILL.md", "recipes/acme-code-reviewer.yaml"},
		DeepAgents: {".deepagents/code-reviewer/AGENTS.md"}, Letta: {"code-reviewer.af"},
	} {
		for _, name := range files {
			if _, err := os.Stat(filepath.Join(dir, "exports-reference", string(target), name)); err != nil {
				t.Errorf("the reference has no %s", name)
			}
			find(t, exported(t, a, target, Options{}), name)
		}
	}
}
