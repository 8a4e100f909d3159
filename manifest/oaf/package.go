package oaf

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"repute"
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// PackageName is the manifest of an archive.
const PackageName = "PACKAGE.yaml"

// Modes of a package's contents.
const (
	ModeBundled    = "bundled"
	ModeReferenced = "referenced"
)

// Package is an archive of agents.
type Package struct {
	Name    string // of the toolkit's form; "" in the format's own
	Version string
	Mode    string // ModeBundled or ModeReferenced
	Entries []PackageEntry
	Agents  []*Agent // those whose directories are in the archive and could be read, ordered by directory
}

// PackageEntry is one agent that PACKAGE.yaml lists.
type PackageEntry struct {
	Slug, Version string
	Path          string // its directory in the archive, "" where the manifest does not say
}

// LoadZip reads an archive: one or more agents, each in a directory of its own, with or without a directory around
// all of them. An archive with an unsafe entry is refused as a whole.
func LoadZip(b []byte, profile problem.Profile) (Package, []problem.Problem) {
	list := &problem.List{Profile: profile}
	fsys := tree.OpenZip(b, list)
	if fsys == nil {
		return Package{}, list.Problems()
	}
	pack := loadPackage(fsys, profile, list)
	return pack, list.Problems()
}

// loadPackage reads all agents of an archive that is safe to read. Problems of each are placed below its directory. All
// agents share one budget, and each is read once, whatever number of others name it: an archive of some hundred KiB
// would take gigabytes otherwise.
func loadPackage(fsys fs.FS, profile problem.Profile, list *problem.List) Package {
	root := packageRoot(fsys)
	pack := readPackage(fsys, root, list)
	l := newLoader(fsys, profile)
	for _, dir := range agentDirs(fsys, root) {
		a, known := l.known[dir]
		if !known {
			a, _ = l.read(dir, nil)
		}
		problems := slices.Clone(l.problems[dir])
		for i := range problems {
			problems[i].File = path.Join(dir, problems[i].File)
		}
		list.Append(problems)
		if a != nil {
			pack.Agents = append(pack.Agents, a)
		}
	}
	if len(pack.Agents) == 0 && list.Len() == 0 {
		list.Add(problem.CodeNoManifest, problem.Place{}, "no directory of the archive has %s", ManifestName)
	}
	pack.compare(list, path.Join(root, PackageName))
	return pack
}

// packageRoot returns the directory that everything is in: the root, or the one directory of the archive, which
// published archives call package/.
func packageRoot(fsys fs.FS) string {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil || len(entries) != 1 || !entries[0].IsDir() {
		return "."
	}
	only := entries[0].Name()
	if _, err := fs.Stat(fsys, path.Join(only, PackageName)); err == nil {
		return only
	}
	return "."
}

// agentDirs returns the directories with an AGENTS.md that are not below another one, ordered.
func agentDirs(fsys fs.FS, root string) []string {
	var dirs []string
	_ = fs.WalkDir(fsys, root, func(name string, d fs.DirEntry, err error) error { // errors leave entries out
		if err != nil || !d.IsDir() {
			return nil
		}
		if strings.Count(name, "/") > maxLevels {
			return fs.SkipDir
		}
		if _, err := fs.Stat(fsys, path.Join(name, ManifestName)); err != nil {
			return nil
		}
		if dirs = append(dirs, name); len(dirs) >= maxAgents {
			return fs.SkipAll
		}
		return fs.SkipDir
	})
	return dirs
}

// readPackage reads PACKAGE.yaml in any of its three forms.
func readPackage(fsys fs.FS, root string, list *problem.List) Package {
	file := path.Join(root, PackageName)
	at := problem.Place{File: file}
	in, err := tree.ReadFile(fsys, file, frontmatter.MaxHead)
	if err != nil {
		list.Add(problem.CodePackage, at, "cannot be read or is missing")
		return Package{}
	}
	text, ok := frontmatter.Clean(in.Data, file, list)
	if !ok {
		return Package{}
	}
	o := frontmatter.ParseYAML(text, file, list)
	if o == nil {
		return Package{}
	}
	p := Package{Name: o.Text("name"), Version: version(o), Mode: o.Text("contents_mode")}
	if contents := o.Object("contents"); contents != nil {
		p.Mode = contents.Text("mode")
	}
	for _, e := range o.Objects("agents", "slug") {
		p.Entries = append(p.Entries, readEntry(e))
	}
	o.Unknown(problem.CodeMember, packageMembers())
	p.check(o)
	return p
}

// readEntry reads one agent of PACKAGE.yaml: by slug, by path, or by its keys.
func readEntry(o *frontmatter.Object) PackageEntry {
	e := PackageEntry{Slug: o.Text("slug"), Version: version(o), Path: strings.TrimSuffix(o.Text("path"), "/")}
	if e.Slug == "" {
		e.Slug = joined(o.Text("vendorKey"), o.Text("agentKey"))
	}
	return e
}

// check reports a manifest that is not in the format's own form, and paths that leave the archive.
func (p *Package) check(o *frontmatter.Object) {
	switch {
	case o.Text("format") == "":
		o.Report(problem.CodePackageOther, "format", "has no format: oaf-package")
	case o.Text("format") != "oaf-package":
		o.Report(problem.CodePackage, "format", "%.80q is not oaf-package", o.Text("format"))
	}
	if p.Mode != "" && p.Mode != ModeBundled && p.Mode != ModeReferenced {
		o.Report(problem.CodeEnum, "contents", "mode %.80q is neither bundled nor referenced", p.Mode)
	}
	for _, e := range p.Entries {
		if e.Path != "" && e.Path != "." && !tree.IsSafe(cleaned(e.Path)) {
			o.Report(problem.CodePath, "agents", "path %.120q leaves the archive", e.Path)
		}
	}
}

// compare reports entries without an agent and agents without an entry.
func (p *Package) compare(list *problem.List, file string) {
	at := problem.Place{File: file}
	listed := map[string]bool{}
	for _, e := range p.Entries {
		i := slices.IndexFunc(p.Agents, func(a *Agent) bool { return e.isOf(a) })
		switch {
		case i < 0 && p.Mode != ModeReferenced:
			list.Add(problem.CodePackageAgent, at, "%.120q is not in the archive", e.name())
		case i >= 0:
			listed[p.Agents[i].Dir] = true
			if e.Version != "" && e.Version != p.Agents[i].Version {
				list.Add(problem.CodePackageAgent, at, "%.120q has version %.80q, and its directory has %.80q",
					e.name(), e.Version,
					p.Agents[i].Version)
			}
		}
	}
	for _, a := range p.Agents {
		if !listed[a.Dir] && len(p.Entries) > 0 {
			list.Add(problem.CodePackageAgent, at, "%.120q is in the archive and not listed", a.Dir)
		}
	}
}

// name returns what PACKAGE.yaml calls an agent, for problems.
func (e PackageEntry) name() string {
	if e.Slug != "" {
		return e.Slug
	}
	return e.Path
}

// isOf reports whether an entry lists an agent: by its slug, else by its directory.
func (e PackageEntry) isOf(a *Agent) bool {
	if e.Slug != "" && (e.Slug == a.Slug || e.Slug == a.ID()) {
		return true
	}
	dir := cleaned(e.Path)
	return e.Path != "" && (a.Dir == dir || strings.HasSuffix(a.Dir, "/"+dir))
}

// Pack returns an archive of agents in the format's own form. files has the contents of the directory of each agent,
// by its AgentKey, which names the directory. Equal contents make equal archives.
func Pack(agents []*Agent, files map[string][]tree.File) ([]byte, error) {
	var all []tree.File
	var entries []*frontmatter.Map
	for _, a := range agents {
		if err := a.CheckIdentity(); err != nil {
			return nil, err
		}
		if !isKebab(a.AgentKey) {
			return nil, repute.Invalid("agentKey", fmt.Sprintf("%.80q is not kebab-case", a.AgentKey),
				"lower-case letters and digits with single hyphens between them")
		}
		entries = append(entries, frontmatter.NewMap().Text("slug", a.ID()).Text("version", a.Version))
		all = append(all, tree.Within(a.AgentKey, files[a.AgentKey])...)
	}
	version := "1.0.0"
	if len(agents) == 1 {
		version = agents[0].Version
	}
	text, err := frontmatter.NewMap().Text("format", "oaf-package").Text("formatVersion", "1.0.0").Text("version",
		version).
		Maps("agents", entries).Map("contents", frontmatter.NewMap().Text("mode", ModeBundled)).YAML()
	if err != nil {
		return nil, err
	}
	all = append(all, tree.File{Path: PackageName, Data: []byte(text)})
	var b bytes.Buffer
	if err := tree.Zip(&b, all); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unpack returns all files of an archive that is safe to unpack; nil with problems for any other.
func Unpack(b []byte, profile problem.Profile) ([]tree.File, []problem.Problem) {
	list := &problem.List{Profile: profile}
	fsys := tree.OpenZip(b, list)
	if fsys == nil {
		return nil, list.Problems()
	}
	files := tree.Read(fsys, ".", tree.NewBudget(), list)
	if _, bad := repute.FirstError(list.Problems()); bad {
		return nil, list.Problems()
	}
	return files, list.Problems()
}
