package oaf

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"repute"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// ManifestName is the file that makes a directory an agent.
const ManifestName = "AGENTS.md"

// Limits of the graph of sub-agents.
const (
	maxLevels     = 8
	maxAgents     = 64
	maxReferences = 256 // of one agent to others
)

// Load reads the agent in a directory of a file system, with the sub-agents whose directories are in the file system as
// well: below the agent's own agents/, next to it, and next to its vendor's directory. The file system is the border:
// no path leaves it. Problems are placed relative to the agent's directory, and those of sub-agents are given only
// where they are errors. The agent is nil where there is no readable AGENTS.md.
func Load(fsys fs.FS, dir string, profile problem.Profile) (*Agent, []problem.Problem) {
	l := newLoader(fsys, profile)
	list := &problem.List{Profile: profile}
	if !fs.ValidPath(dir) {
		list.Add(problem.CodePath, problem.Place{}, "%.120q is no path of the file system", dir)
		return nil, list.Problems()
	}
	agent := l.agent(dir, nil, list)
	return agent, list.Problems()
}

// loader reads one agent and its sub-agents, or all agents of an archive.
type loader struct {
	fsys    fs.FS
	profile problem.Profile
	budget  *tree.Budget
	known   map[string]*Agent // by directory; nil for one that could not be read
	lookup  lookup

	problems map[string][]problem.Problem // of the agents that read has read, by directory
}

// newLoader returns a loader that has read nothing.
func newLoader(fsys fs.FS, profile problem.Profile) *loader {
	return &loader{fsys: fsys, profile: profile, budget: tree.NewBudget(), known: map[string]*Agent{},
		lookup:   lookup{fsys: fsys, budget: tree.NewBudget(), heads: map[string]head{}},
		problems: map[string][]problem.Problem{}}
}

// read reads the agent of a directory that is not known, and keeps its problems, which the caller MUST NOT change.
func (l *loader) read(dir string, above []string) (*Agent, []problem.Problem) {
	own := &problem.List{Profile: l.profile}
	a := l.agent(dir, above, own)
	l.problems[dir] = own.Problems()
	return a, l.problems[dir]
}

// agent reads the agent of a directory. list gets its problems.
func (l *loader) agent(dir string, above []string, list *problem.List) *Agent {
	l.known[dir] = nil
	files := tree.Read(l.fsys, dir, l.budget, list)
	a := parse(dir, files, list)
	if a == nil {
		return nil
	}
	l.known[dir] = a
	l.resolve(a, append(slices.Clone(above), dir), list)
	return a
}

// parse reads an agent from the files of its directory, without its sub-agents.
func parse(dir string, files []tree.File, list *problem.List) *Agent {
	at := slices.IndexFunc(files, func(f tree.File) bool { return f.Path == ManifestName })
	if at < 0 {
		noManifest(files, list)
		return nil
	}
	a, head := parseManifest(files[at].Data, ManifestName, list)
	if a == nil {
		return nil
	}
	a.Dir = dir
	a.contents(files, list)
	checkManifest(a, head, list)
	checkReferences(a, head, list)
	return a
}

// noManifest reports a directory without a readable AGENTS.md. One that could not be read has its own problem.
func noManifest(files []tree.File, list *problem.List) {
	switch other := tree.Misspelled(files, ManifestName); {
	case list.HasError(ManifestName):
	case other != "":
		list.Suggest(problem.CodeNoManifest, problem.Place{File: other}, "rename it to "+ManifestName,
			"there is no %s, and names have an upper and a lower case", ManifestName)
	default:
		list.Add(problem.CodeNoManifest, problem.Place{}, "there is no %s", ManifestName)
	}
}

// ParseManifest reads one AGENTS.md without its directory. It is nil where the frontmatter cannot be read.
func ParseManifest(b []byte, profile problem.Profile) (*Agent, []problem.Problem) {
	list := &problem.List{Profile: profile}
	a, head := parseManifest(b, ManifestName, list)
	if a != nil {
		checkManifest(a, head, list)
	}
	return a, list.Problems()
}

// parseManifest reads AGENTS.md without judging it. The agent is nil where the frontmatter cannot be read; the object
// is what the checks place their problems by.
func parseManifest(b []byte, file string, list *problem.List) (*Agent, *frontmatter.Object) {
	text, ok := frontmatter.Clean(b, file, list)
	if !ok {
		return nil, nil
	}
	parts := frontmatter.Split(text)
	if !parts.HasHead {
		list.Add(problem.CodeNoFrontmatter, problem.Place{File: file, Line: 1},
			"the file does not begin with ---, or a second --- is missing")
		return nil, nil
	}
	head := parts.Object(file, list)
	if head == nil {
		return nil, nil
	}
	a := readManifest(head)
	a.Body = frontmatter.TrimBody(parts.Body)
	return a, head
}

// contents sorts the files of the directory into skills, servers, versions and others.
func (a *Agent) contents(files []tree.File, list *problem.List) {
	skills, servers := map[string][]tree.File{}, map[string][]tree.File{}
	for _, f := range files {
		top, rest, nested := strings.Cut(f.Path, "/")
		name, below, inDirectory := strings.Cut(rest, "/")
		switch {
		case f.Path == ManifestName:
		case top == skillsDir && inDirectory:
			f.Path = below
			skills[name] = append(skills[name], f)
		case top == serversDir && nested && (inDirectory || isYAML(name)):
			f.Path = below
			servers[name] = append(servers[name], f)
		case top == versionsDir && below == ManifestName:
			a.Versions = append(a.Versions, pastVersion(name, f.Data, list))
		default:
			a.Files = append(a.Files, f)
		}
	}
	a.readSkills(skills, list)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		a.Servers = append(a.Servers, parseServer(name, servers[name], list))
	}
}

// Directories of an agent.
const (
	skillsDir   = "skills"
	serversDir  = "mcp-configs"
	versionsDir = "versions"
	agentsDir   = "agents"
)

// isYAML reports whether a file of mcp-configs/ is a configuration by its name.
func isYAML(name string) bool { return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml" }

// readSkills reads the directories of skills/, in the order of their names so that equal directories make equal agents.
func (a *Agent) readSkills(dirs map[string][]tree.File, list *problem.List) {
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		s, ok := skill.Parse(name, path.Join(skillsDir, name), dirs[name], list)
		if ok {
			a.LocalSkills = append(a.LocalSkills, s)
			continue
		}
		// No skill, but part of the directory: it is kept when the agent is written.
		a.Files = append(a.Files, tree.Within(path.Join(skillsDir, name), dirs[name])...)
	}
}

// pastVersion reads a directory of versions/.
func pastVersion(dir string, text []byte, list *problem.List) PastVersion {
	file := path.Join(versionsDir, dir, ManifestName)
	v := PastVersion{Version: strings.TrimPrefix(dir, "v"), Text: text}
	if !isVersion(v.Version) || v.Version == dir {
		list.Add(problem.CodeVersionName, problem.Place{File: path.Join(versionsDir, dir)},
			"%.80q is no v and a semantic version", dir)
	}
	old, _ := parseManifest(text, file, &problem.List{})
	switch {
	case old == nil:
		list.Add(problem.CodeVersionOther, problem.Place{File: file}, "has no readable frontmatter")
	case old.Version != v.Version:
		list.Add(problem.CodeVersionOther, problem.Place{File: file}, "has version %.80q", old.Version)
	}
	return v
}

// resolve finds the directories of sub-agents.
func (l *loader) resolve(a *Agent, above []string, list *problem.List) {
	for i := range a.Agents {
		ref := &a.Agents[i]
		at := problem.Place{File: ManifestName, Path: "/agents/" + strconv.Itoa(i), Line: ref.line}
		if i == maxReferences {
			list.Add(problem.CodeTooDeep, at, "more than %d references: this one and later ones are not looked for",
				maxReferences)
			return
		}
		if ref.Agent == "" {
			continue // the missing name has its own problem
		}
		if vendor, agent, both := strings.Cut(ref.Agent, "/"); both && ref.Vendor == "" && isElement(vendor) &&
			isElement(agent) {
			list.Suggest(problem.CodePath, at, "write {vendor: "+vendor+", agent: "+agent+"}",
				"%.120q is vendor and agent in one text", ref.Agent)
			continue
		}
		if isSelf(a, *ref) {
			list.Add(problem.CodeSelf, at, "the agent names itself, %s", ref.ID())
			continue
		}
		if !isElement(ref.Agent) || ref.Vendor != "" && !isElement(ref.Vendor) {
			list.Add(problem.CodePath, at, "%.120q cannot be the name of a directory", ref.ID())
			continue
		}
		dir, other := l.lookup.find(a, *ref)
		if dir == "" && l.lookup.full {
			list.Add(problem.CodeTooManyFiles, at, "%.120q was not looked for: too many other directories were",
				ref.ID())
			continue
		}
		if dir == "" {
			l.absent(a, *ref, other, list, at)
			continue
		}
		l.attach(a, ref, dir, above, list, at)
	}
}

// absent reports a sub-agent without a directory; other is one where it would be and another agent is, "" for none. A
// reference that names an agent of the registry needs no directory.
func (l *loader) absent(a *Agent, ref AgentRef, other string, list *problem.List, at problem.Place) {
	if ref.Extra["agentId"] != nil {
		return
	}
	if other != "" {
		h := l.lookup.heads[other]
		list.Add(problem.CodeAgentOther, at, "%.120q is wanted, and %.200s/%s names %.120q", ref.ID(),
			relative(a.Dir, other), ManifestName, joined(h.vendor, h.agent))
		return
	}
	code := problem.CodeAgentOptional
	if ref.Required {
		code = problem.CodeAgentAbsent
	}
	list.Add(code, at, "no directory of %.120q was found", ref.ID())
}

// isSelf reports whether a reference names the agent itself. It would be its own sub-agent, without end.
func isSelf(a *Agent, ref AgentRef) bool {
	return ref.Agent != "" && (ref.ID() == a.ID() || ref.Vendor == "" && ref.Agent == a.AgentKey ||
		ref.Agent == a.AgentKey && ref.Vendor == a.VendorKey)
}

// attach reads the sub-agent of a directory, once for all references to it.
func (l *loader) attach(a *Agent, ref *AgentRef, dir string, above []string, list *problem.List, at problem.Place) {
	if slices.Contains(above, dir) {
		list.Add(problem.CodeCycle, at, "%s delegates to %s, which delegates back", a.ID(), ref.ID())
		return
	}
	sub, known := l.known[dir]
	if !known {
		if len(above) >= maxLevels || len(l.known) >= maxAgents {
			list.Add(problem.CodeTooDeep, at, "more than %d levels or %d agents", maxLevels, maxAgents)
			return
		}
		var problems []problem.Problem
		sub, problems = l.read(dir, above)
		list.Append(errorsOf(problems, relative(a.Dir, dir)))
	}
	if sub == nil {
		return
	}
	ref.Local = sub
	if !satisfies(ref.Version, sub.Version) {
		list.Add(problem.CodeConflict, at, "%s is wanted as %.80q, and its directory has %.80q", ref.ID(), ref.Version,
			sub.Version)
	}
}

// relative returns the place of a sub-agent's directory for problems: relative to the agent that names it, whose own
// problems are placed relative to its directory.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(to))
	if err != nil {
		return to
	}
	return filepath.ToSlash(rel)
}

// errorsOf returns the errors of a sub-agent with their places below its directory.
func errorsOf(problems []problem.Problem, dir string) []problem.Problem {
	var out []problem.Problem
	for _, p := range problems {
		if p.Severity == repute.SeverityError {
			p.File = path.Join(dir, p.File)
			out = append(out, p)
		}
	}
	return out
}
