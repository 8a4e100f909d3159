package oaf

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// checkReferences reports references that do not resolve within the directory, and lists that contradict each other.
func checkReferences(a *Agent, o *frontmatter.Object, list *problem.List) {
	a.checkSkills(list)
	a.checkServers(list)
	checkVersions(o)
	a.checkDenied(o, list)
	a.checkToolNames(o)
	a.checkLicenseFile(list)
	a.checkOrchestration(o)
}

// checkSkills reports local skills without a directory, and directories that no reference declares. Skills of a registry
// are not looked for here.
func (a *Agent) checkSkills(list *problem.List) {
	declared := map[string]bool{}
	for i, ref := range a.Skills {
		at := problem.Place{File: ManifestName, Path: "/skills/" + strconv.Itoa(i), Line: ref.line}
		declared[ref.Name] = true
		if !ref.IsLocal() {
			continue
		}
		s := a.Skill(ref.Name)
		switch {
		case !isElement(ref.Name):
			list.Add(problem.CodePath, at, "%.120q cannot be the name of a directory", ref.Name)
		case s == nil && list.HasError(path.Join(skillsDir, ref.Name, skill.FileName)):
		case s == nil:
			list.Add(problem.CodeSkillAbsent, at, "there is no skills/%s/SKILL.md", ref.Name)
		case !satisfies(ref.Version, s.Metadata["version"]):
			list.Add(problem.CodeConflict, at, "%s is wanted as %.80q, and its directory has %.80q", ref.Name, ref.Version,
				s.Metadata["version"])
		}
	}
	for _, s := range a.LocalSkills {
		if !declared[s.Dir] && !declared[s.Name] {
			list.Add(problem.CodeSkillUndeclared, problem.Place{File: path.Join(skillsDir, s.Dir)}, "skills does not name %q",
				s.Dir)
		}
	}
}

// checkServers reports references without a configuration, configurations of another version, and those that nothing
// uses.
func (a *Agent) checkServers(list *problem.List) {
	used := map[string]bool{}
	for i, ref := range a.MCPServers {
		at := problem.Place{File: ManifestName, Path: "/mcpServers/" + strconv.Itoa(i), Line: ref.line}
		if ref.Server == "" && ref.ConfigDir == "" {
			continue // the missing name has its own problem
		}
		of := at
		if ref.ConfigDir != "" {
			of.Path += "/configDir"
		}
		if strings.Contains(ref.ConfigDir, "\\") {
			list.Suggest(problem.CodePath, of, "write "+strings.ReplaceAll(ref.ConfigDir, "\\", "/"),
				"configDir %.120q has backslashes", ref.ConfigDir)
			continue
		}
		if ref.ConfigDir != "" && !tree.IsSafe(cleaned(ref.ConfigDir)) {
			list.Add(problem.CodePath, of, "configDir %.120q leaves the agent's directory", ref.ConfigDir)
			continue
		}
		s := a.Server(ref)
		switch {
		case s != nil && !satisfies(ref.Version, s.Version):
			used[s.Dir] = true
			list.Add(problem.CodeConflict, at, "%s is wanted as %.80q, and its configuration has %.80q", ref.Server,
				ref.Version, s.Version)
		case s != nil:
			used[s.Dir] = true
		case ref.Required:
			list.Add(problem.CodeConfigAbsent, of, "%.120q has no configuration%s", ref.Server, lookedFor(ref))
		default:
			list.Add(problem.CodeConfigOptional, of, "%.120q has no configuration%s", ref.Server, lookedFor(ref))
		}
	}
	for _, s := range a.Servers {
		if !used[s.Dir] {
			list.Add(problem.CodeServerUnlisted, problem.Place{File: s.Dir}, "mcpServers does not name it")
		}
	}
}

// lookedFor says where the configuration of a server was looked for.
func lookedFor(ref ServerRef) string {
	if ref.ConfigDir == "" {
		return ""
	}
	return ": there is no " + strconv.Quote(cleaned(ref.ConfigDir))
}

// checkVersions reports two references to one thing whose versions exclude each other.
func checkVersions(o *frontmatter.Object) {
	seen := map[string]string{}
	for _, ref := range referencesOf(o) {
		key := ref.member + " " + ref.name
		before, twice := seen[key]
		if twice && !satisfies(before, ref.version) && !satisfies(ref.version, before) {
			ref.in.Report(problem.CodeConflict, "version", "%.80q is wanted as %.80q and as %.80q", ref.name, before, ref.version)
		}
		seen[key] = ref.version
	}
}

// checkDenied reports tools that are denied and wanted as well.
func (a *Agent) checkDenied(o *frontmatter.Object, list *problem.List) {
	for _, tool := range slices.Concat(a.Tools, a.Config.Allowed) {
		if a.Denies(tool) {
			o.Object("config").Object("tools").Report(problem.CodeDenied, "denied", "%.80q is allowed and denied", tool)
		}
	}
	for _, s := range a.LocalSkills {
		for _, tool := range s.AllowedTools {
			if a.Denies(tool) {
				at := problem.Place{File: path.Join(skillsDir, s.Dir, skill.FileName), Path: "/" + skill.ToolsMember,
					Line: s.ToolsLine}
				list.Add(problem.CodeDenied, at, "the skill asks for %.80q, which the agent denies", tool)
			}
		}
	}
	for _, s := range a.Servers {
		for _, t := range s.Selection.Tools {
			if t.Enabled && a.Denies(t.Name) {
				list.Add(problem.CodeDenied, t.at, "%.80q is selected, and the agent denies it", t.Name)
			}
		}
	}
}

// Denies reports whether config.tools.denied names a tool.
func (a *Agent) Denies(tool string) bool { return Lists(a.Config.Denied, tool) }

// Lists reports whether a list of tools names a tool, by the rules of config.tools.denied. Names are compared without
// regard to case, and a tool with arguments, such as Bash(git:*), is named by its name. Patterns are those of Selection.
func Lists(list []string, tool string) bool {
	whole := strings.ToLower(tool)
	name, _, _ := strings.Cut(whole, "(")
	return slices.ContainsFunc(list, func(pattern string) bool {
		pattern = strings.ToLower(pattern)
		return matches(pattern, name) || pattern == whole
	})
}

// checkOrchestration reports an entrypoint or a fallback that names no agent: a task would reach nobody.
func (a *Agent) checkOrchestration(o *frontmatter.Object) {
	for _, field := range []struct{ name, value string }{
		{"entrypoint", a.Orchestration.Entrypoint}, {"fallback", a.Orchestration.Fallback},
	} {
		in := o.Object("orchestration")
		if !in.Has(field.name) {
			in = o // where published agents have it
		}
		if field.value != "" && !a.hasMember(field.value) {
			in.Report(problem.CodeEntry, field.name, "%.80q names no agent of agents", field.value)
		}
	}
}

// hasMember reports whether a name is the agent itself or one of its sub-agents.
func (a *Agent) hasMember(name string) bool {
	return name == EntrypointMain || name == a.AgentKey || name == a.ID() || a.SubAgent(name) != nil
}

// SubAgent returns the reference that a name of orchestration means: agent, vendor/agent or role; nil if there is none.
func (a *Agent) SubAgent(name string) *AgentRef {
	if ref := find(a.Agents, func(r *AgentRef) bool { return r.Agent == name || r.ID() == name }); ref != nil {
		return ref
	}
	return find(a.Agents, func(r *AgentRef) bool { return r.Role == name })
}
