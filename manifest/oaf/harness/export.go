// Package harness writes agents of the Open Agent Format as the files that agent harnesses load, and reads agents of
// Claude Code and of Letta. It is pure: agents in, files out, and the other way.
//
// Export writes an agent with its local sub-agents for Claude Code, Goose, Deep Agents or Letta; FromClaudeCode and
// FromLetta read them back. Formats differ in what they can say: what a harness has no place for is named in a Note and
// never dropped silently, so that an agent which is exported and imported again differs only where a note says so.
//
// Each harness has a file that writes its layout and a method that records the losses. What limits an agent is never
// lost in silence: where a harness has no list of denied tools, its prompt denies them in words (prompt), and the notes
// say so. Secrets in the open are not carried in either direction; references such as ${NAME} are.
package harness

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// Target is a harness.
type Target string

// Targets.
const (
	ClaudeCode Target = "claude-code"
	Goose      Target = "goose"
	DeepAgents Target = "deep-agents"
	Letta      Target = "letta"
)

// Layout says where the files are.
type Layout string

// Layouts. LayoutLoaded is where the harness looks; LayoutText is where the text of the format says that it looks.
const (
	LayoutLoaded Layout = "loaded"
	LayoutText   Layout = "text"
)

// Options of an export. The zero value is the layout that harnesses load, with the models of Models.
type Options struct {
	Layout Layout
	// Models names the model of an alias as provider/name. Nil means Models().
	Models map[string]string
}

// Models returns the models that the aliases of the format mean where a harness knows no aliases.
func Models() map[string]string {
	return map[string]string{
		"sonnet": "anthropic/claude-sonnet-4-5",
		"opus":   "anthropic/claude-opus-4-5",
		"haiku":  "anthropic/claude-haiku-4-5",
	}
}

// Result is an export: files with paths below the project's directory, and what they do not carry.
type Result struct {
	Files []tree.File // ordered by path
	Notes []Note
}

// Export writes an agent and its local sub-agents for a harness. repute.ErrInvalid for an unknown target or layout,
// and for an agent that has neither a key nor a name.
//
// Names are given to all agents first, and skills take what is left: an agent's file is what people call it by, and a
// skill can be renamed with a note.
func Export(a *oaf.Agent, to Target, o Options) (Result, error) {
	if o.Layout != "" && o.Layout != LayoutLoaded && o.Layout != LayoutText {
		return Result{}, repute.Invalid("layout", fmt.Sprintf("%.80q is unknown", o.Layout), "loaded or text")
	}
	if o.Models == nil {
		o.Models = Models()
	}
	e := &export{options: o, skills: map[string]skill.Skill{}, written: map[string]string{}, taken: map[string]bool{}}
	if fullName(a) == "" {
		return Result{}, repute.Invalid("agent", "has no vendorKey, agentKey and name that make a file name",
			"add them")
	}
	for _, agent := range a.Graph() {
		e.name(agent) // before skills take names
	}
	var err error
	switch to {
	case ClaudeCode:
		err = e.claudeCode(a)
	case Goose:
		err = e.goose(a)
	case DeepAgents:
		err = e.deepAgents(a)
	case Letta:
		err = e.letta(a)
	default:
		return Result{}, repute.Invalid("to", fmt.Sprintf("%.80q is unknown", to),
			"claude-code, goose, deep-agents or letta")
	}
	if err != nil {
		return Result{}, err
	}
	slices.SortFunc(e.files, func(x, y tree.File) int { return strings.Compare(x.Path, y.Path) })
	return Result{Files: e.files, Notes: e.notes}, nil
}

// export is one export that is being made.
// One export uses it, in one goroutine.
type export struct {
	options Options
	files   []tree.File
	notes   []Note
	skills  map[string]skill.Skill // exported ones, by name
	written map[string]string      // names of exported agents, by identifier
	taken   map[string]bool        // names in use
}

// add adds a file below the project's directory. Names are made of keys in kebab-case, so that none leaves it.
func (e *export) add(name string, data []byte) {
	e.files = append(e.files, tree.File{Path: name, Data: data})
}

// lose records a part that is not carried, if the condition holds.
// The condition is an argument, so that the losses of a harness read as a list. The arguments of the reason are
// evaluated in any case, and MUST be cheap.
func (e *export) lose(is bool, a *oaf.Agent, field, format string, args ...any) {
	if is {
		e.notes = append(e.notes, Note{Kind: Dropped, Agent: a.ID(), Field: field,
			Reason: fmt.Sprintf(format, args...)})
	}
}

// fullName returns vendor-agent in kebab-case, within the length of a skill's name; "" where there is nothing to make
// one of.
func fullName(a *oaf.Agent) string {
	name := kebab(a.VendorKey + "-" + a.AgentKey)
	if name == "" || a.AgentKey == "" {
		name = kebab(a.Slug)
	}
	if name == "" {
		name = kebab(a.Name)
	}
	return name
}

// kebab returns a text in kebab-case, within the length of a skill's name.
func kebab(s string) string {
	s = regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(s), "-")
	s = strings.Trim(s, "-")
	if len(s) > skill.MaxName {
		s = s[:skill.MaxName]
	}
	return strings.Trim(s, "-")
}

// name returns the name of an exported agent, the same for each call. Two agents never share one.
// The key has the directory too: two sub-agents may have one identifier.
func (e *export) name(a *oaf.Agent) string {
	key := a.ID() + "\n" + a.Dir
	if name, ok := e.written[key]; ok {
		return name
	}
	name := e.free(fullName(a))
	e.written[key] = name
	return name
}

// free returns a name that is not in use yet, made of the given one.
// Names are cut before the number is added, so that they stay within the length of a skill's name.
func (e *export) free(name string) string {
	if name == "" {
		name = "agent"
	}
	out := name
	for i := 2; e.taken[out]; i++ {
		suffix := fmt.Sprintf("-%d", i)
		out = strings.TrimRight(name[:min(len(name), skill.MaxName-len(suffix))], "-") + suffix
	}
	e.taken[out] = true
	return out
}

// skill returns the files of a local skill below its own directory, under a name that no other skill has. done is true
// for a skill that is exported already, for another agent.
//
// Two agents may have the same skill, which is written once. One of the same name and other content is renamed,
// because skills of a project share a directory.
func (e *export) skill(a *oaf.Agent, s skill.Skill) (name string, files []tree.File, done bool, err error) {
	out, cut := s.Conform(kebab(s.Name))
	e.lose(len(cut) > 0, a, "skills", "%s of skill %s is cut", strings.Join(cut, " and "), s.Name)
	e.lose(out.Name != s.Name || s.Dir != s.Name || out.Description != s.Description && len(cut) == 0, a, "skills",
		"skill %s is written as the specification of skills demands, as %s", s.Name, out.Name)
	if before, ok := e.skills[out.Name]; ok && sameSkill(before, out) {
		return out.Name, nil, true, nil
	}
	if free := e.free(out.Name); free != out.Name {
		e.lose(true, a, "skills", "skill %s is renamed to %s: another one has its name", s.Name, free)
		out.Name, out.Dir = free, free
	}
	e.skills[out.Name] = out
	files, err = out.Write()
	return out.Name, files, false, err
}

// sameSkill reports whether two skills are written alike.
func sameSkill(a, b skill.Skill) bool {
	x, errX := a.Write()
	y, errY := b.Write()
	return errX == nil && errY == nil && slices.EqualFunc(x, y, func(a, b tree.File) bool {
		return a.Path == b.Path && string(a.Data) == string(b.Data) && a.Executable == b.Executable
	})
}

// localSkills writes all local skills of an agent below a directory, and returns their names.
func (e *export) localSkills(a *oaf.Agent, dir string) ([]string, error) {
	var names []string
	for _, s := range a.LocalSkills {
		name, files, done, err := e.skill(a, s)
		if err != nil {
			return nil, err
		}
		if !done {
			e.files = append(e.files, tree.Within(dir+"/"+name, files)...)
		}
		names = append(names, name)
	}
	return names, nil
}

// common records what no harness has a place for. The other harnesses' sections of harnessConfig are among it.
func (e *export) common(a *oaf.Agent, to Target) {
	e.lose(len(a.Packs) > 0, a, "packs", "packs are installed by the harness")
	e.lose(len(a.Weblets) > 0, a, "weblets", "there are no weblets")
	o := a.Orchestration
	e.lose(o.Entrypoint != "" || o.Fallback != "" || len(o.Triggers) > 0, a, "orchestration",
		"the harness decides which agent answers")
	e.lose(len(a.Versions) > 0, a, "versions", "there is no version history")
	e.lose(len(a.Files) > 0, a, "files", "%d files outside skills/ and mcp-configs/ are not copied", len(a.Files))
	e.lose(len(a.Harness) > 0, a, "harnessConfig", "settings of harnesses are not translated to %s", to)
	for _, member := range unknown(a) {
		e.lose(true, a, member, "the format does not know this member")
	}
	e.lose(a.Config.RequireConfirmation, a, "config.require_confirmation", "the harness asks by its own settings")
	e.lose(a.Model.Embedding != "" && to != Letta, a, "model", "the embedding model is not carried")
	e.lose(!isPlainSkills(a), a, "skills",
		"references say more than that local skills exist: source, vendor, version, required")
	e.lose(!isPlainServers(a), a, "mcpServers",
		"references say more than where the configuration is: vendor, version, required")
}

// unknown returns the members of the frontmatter that the format does not know: those that Load found, and those of an
// agent that was not loaded.
// An agent that a program made has no list of unknown members, and its extra ones are named here.
func unknown(a *oaf.Agent) []string {
	out := slices.Clone(a.Unknown)
	for prefix, extra := range map[string]map[string]json.RawMessage{"": a.Extra, "config.": a.Config.Extra,
		"model.": a.Model.Extra} {
		for name := range extra {
			out = append(out, prefix+name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// plainSkills returns the references that an import makes of local skills.
func plainSkills(skills []skill.Skill) []oaf.SkillRef {
	var out []oaf.SkillRef
	for _, s := range skills {
		out = append(out, oaf.SkillRef{Name: s.Name, Source: oaf.SourceLocal})
	}
	return out
}

// isPlainSkills reports whether the references to skills are those that an import makes.
func isPlainSkills(a *oaf.Agent) bool {
	return slices.EqualFunc(a.Skills, plainSkills(a.LocalSkills), oaf.SkillRef.Equal)
}

// plainServers returns the references that an import makes of configurations.
func plainServers(servers []oaf.Server) []oaf.ServerRef {
	var out []oaf.ServerRef
	for _, s := range servers {
		out = append(out, oaf.ServerRef{Server: s.Name, ConfigDir: s.Dir})
	}
	return out
}

// isPlainServers reports whether references to servers say no more than the servers' own files do.
func isPlainServers(a *oaf.Agent) bool {
	return slices.EqualFunc(a.MCPServers, plainServers(a.Servers), oaf.ServerRef.Equal)
}
