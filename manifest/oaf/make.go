package oaf

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"repute"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// Template is a kind of agent to begin with.
type Template string

// Templates of New.
const (
	TemplateMinimal  Template = "minimal"   // AGENTS.md with sections
	TemplateSubAgent Template = "sub-agent" // AGENTS.md with a direct prompt and few tools
	TemplateFull     Template = "full"      // with a skill, an MCP server, memory and a sub-agent
)

// New returns an agent to begin with. repute.ErrInvalid for keys that are not kebab-case.
func New(kind Template, vendor, key string) (*Agent, error) {
	for name, value := range map[string]string{"vendor": vendor, "name": key} {
		if !isKebab(value) {
			return nil, repute.Invalid(name, fmt.Sprintf("%.80q is not kebab-case", value),
				"lower-case letters and digits with single hyphens between them")
		}
	}
	a := &Agent{
		Dir: ".", Name: titled(key), VendorKey: vendor, AgentKey: key, Version: "1.0.0", Slug: vendor + "/" + key,
		Description: "Says in fifty to five hundred characters what " + key + " does and when to use it.",
		Author:      "@" + vendor, License: "MIT", Tags: []string{"assistant"},
	}
	switch kind {
	case TemplateMinimal:
		a.Body = "# Agent Purpose\n\nI help with one thing, and say so.\n\n" +
			"## Core Responsibilities\n\n- Answer questions\n- Say what I do not know"
	case TemplateSubAgent:
		a.Tools, a.Model = []string{"Read", "Glob", "Grep"}, Model{Alias: "sonnet"}
		a.Body = "You review what you are given. Name the most important finding first, and give the place of each.\n\n" +
			"## Answer\n\nOne finding in each line."
	case TemplateFull:
		a.full()
	default:
		return nil, repute.Invalid("template", fmt.Sprintf("%.80q is unknown", kind), "one of minimal, sub-agent, full")
	}
	return a, nil
}

// titled makes a display name of a key.
func titled(key string) string {
	words := strings.Split(key, "-")
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}

// full adds an example of everything that an agent can have.
func (a *Agent) full() {
	warm := 0.7
	a.Body = "# Agent Purpose\n\nI coordinate a reviewer and read files.\n\n" +
		"## Core Responsibilities\n\n- Read the files of a change\n" +
		"- Ask the reviewer\n\n## Limitations\n\n- I never write files"
	a.Skills = []SkillRef{{Name: "summarize", Version: "1.0.0", Source: SourceLocal, Required: true}}
	a.MCPServers = []ServerRef{{Vendor: a.VendorKey, Server: "filesystem", Version: "1.0.0",
		ConfigDir: "mcp-configs/filesystem"}}
	a.Agents = []AgentRef{{Vendor: a.VendorKey, Agent: "reviewer", Version: "1.0.0", Role: "reviewer",
		Delegations: []string{"code-quality"}}}
	a.Orchestration = Orchestration{Entrypoint: EntrypointMain, Triggers: []Trigger{{"code-change", "review"}}}
	a.Tools = []string{"Read", "Glob", "Grep"}
	a.Config = Config{Temperature: &warm, MaxTokens: 4096, Denied: []string{"Bash"}}
	a.Memory = &Memory{Type: MemoryEditable, Blocks: []MemoryBlock{{Label: "user_context"}}}
	a.Model = Model{Provider: "anthropic", Name: "claude-sonnet-4-5"}
	a.LocalSkills = []skill.Skill{{Dir: "summarize", Name: "summarize",
		Description: "Summarizes a text in three lines. Use it for texts of more than a page.", License: a.License,
		Metadata: map[string]string{"version": "1.0.0"}, Body: "# Summarize\n\nRead the text twice. Write three lines."}}
	a.Servers = []Server{{Dir: "mcp-configs/filesystem", Vendor: a.VendorKey, Name: "filesystem", Version: "1.0.0",
		Selection: Selection{Present: true, Strategy: StrategySubset, Excluded: []string{"delete_*"},
			Tools: []SelectedTool{{Name: "read_file", Enabled: true, Required: true}}},
		Connection:  Connection{Type: TransportSSE, URL: "http://127.0.0.1:8811/sse", Timeout: 60},
		Auth:        Auth{Type: "bearer", Token: "${FILESYSTEM_TOKEN}"},
		Permissions: Permissions{AllowPaths: []string{"/workspace"}, ReadOnly: true},
		RateLimit:   RateLimit{PerMinute: 60, Burst: 10}}}
	a.Files = []tree.File{{Path: "examples/review.md", Data: []byte("# Review of a change\n\nReview the last change.\n")}}
}

// readme describes the agent for people.
func (a *Agent) readme() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n| field | value |\n|---|---|\n", frontmatter.OneLine(a.Name), frontmatter.OneLine(a.Description))
	for _, row := range [][2]string{
		{"agent", a.ID()}, {"version", a.Version}, {"author", a.Author}, {"license", a.License},
		{"tags", strings.Join(a.Tags, ", ")}, {"model", a.Model.text()}, {"tools", strings.Join(a.Tools, ", ")},
	} {
		if row[1] != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", row[0], strings.ReplaceAll(frontmatter.OneLine(row[1]), "|", "\\|"))
		}
	}
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n- %s\n", title, strings.Join(lines, "\n- "))
		}
	}
	var skills, servers, agents []string
	for _, s := range a.LocalSkills {
		skills = append(skills, frontmatter.OneLine(s.Name+": "+s.Description))
	}
	for _, s := range a.Servers {
		servers = append(servers, frontmatter.OneLine(s.Name))
	}
	for _, r := range a.Agents {
		agents = append(agents, frontmatter.OneLine(r.ID()))
	}
	section("Skills", skills)
	section("MCP servers", servers)
	section("Sub-agents", agents)
	b.WriteString("\nThe instructions are in AGENTS.md.\n")
	return b.String()
}

// text returns the model as a person writes it, "" for none.
func (m Model) text() string {
	if m.Alias != "" || m.Provider == "" {
		return m.Alias + m.Name
	}
	return m.Provider + "/" + m.Name
}

// NextVersion returns the changes to an agent's directory that keep the present AGENTS.md below versions/ and give
// AGENTS.md a new version. text is the present AGENTS.md; nothing but its version changes. Generated files that name
// the version are among the changes; edited is as Generate says.
func NextVersion(a *Agent, text []byte, next string) (changes []tree.File, edited []string, err error) {
	switch {
	case !isVersion(next):
		return nil, nil, repute.Invalid("version", fmt.Sprintf("%.80q is no semantic version", next),
			"three numbers, such as 1.1.0")
	case !isVersion(a.Version):
		return nil, nil, repute.Invalid(ManifestName, fmt.Sprintf("its version %.80q is no semantic version", a.Version),
			"mend it first")
	case slices.ContainsFunc(a.Versions, func(v PastVersion) bool { return v.Version == a.Version }):
		return nil, nil, repute.Conflict("versions/v%s exists already", a.Version)
	case !semver.MustParse(next).GreaterThan(semver.MustParse(a.Version)):
		return nil, nil, repute.Invalid("version", fmt.Sprintf("%s is not after %s", next, a.Version), "a later version")
	}
	changed, ok := frontmatter.Replace(string(text), "version", next)
	if !ok {
		return nil, nil, repute.Invalid(ManifestName, "has no version on a line of its own", "write version: \"1.0.0\"")
	}
	if after, _ := ParseManifest([]byte(changed), problem.Lenient); after == nil || after.Version != next {
		return nil, nil, repute.Invalid(ManifestName, "its version cannot be replaced",
			"write version: \"1.0.0\" on a line of its own")
	}
	later := *a
	later.Version, later.Versions = next, append(slices.Clone(a.Versions), PastVersion{Version: a.Version, Text: text})
	generated, edited := later.regenerate()
	return append([]tree.File{{Path: ManifestName, Data: []byte(changed)},
		{Path: path.Join(versionsDir, "v"+a.Version, ManifestName), Data: text}}, generated...), edited, nil
}
