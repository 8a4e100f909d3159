package oaf

import (
	"io/fs"
	"path"
	"strings"

	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// lookup finds the directories of sub-agents. It reads the AGENTS.md of each directory once, whatever number of
// references may mean it, and within a budget of its own: what is only compared by name is not part of the agent.
type lookup struct {
	fsys   fs.FS
	budget *tree.Budget
	heads  map[string]head // by directory
	full   bool            // the budget is used up: a directory that is not in heads has no agent
}

// head is what an AGENTS.md says about the identity of its agent.
type head struct {
	exists        bool   // an AGENTS.md that is reached without a symbolic link and could be read
	vendor, agent string // "" where the file does not say, or has no readable frontmatter
}

// find returns the directory of a sub-agent, "" if there is none. other is the first directory where it would be
// whose AGENTS.md names another agent.
func (l *lookup) find(a *Agent, ref AgentRef) (found, other string) {
	for _, dir := range []string{
		path.Join(a.Dir, agentsDir, ref.Agent), path.Join(a.Dir, agentsDir, ref.Vendor, ref.Agent),
		path.Join(a.Dir, "..", ref.Agent), path.Join(a.Dir, "..", ref.Vendor, ref.Agent),
		path.Join(a.Dir, "..", "..", ref.Vendor, ref.Agent),
	} {
		if dir == a.Dir || !fs.ValidPath(dir) {
			continue
		}
		if h := l.head(dir); h.isOf(ref) {
			return dir, ""
		} else if h.exists && other == "" {
			other = dir
		}
	}
	return "", other
}

// isOf reports whether the agent of a directory is the one that a reference names: another vendor's agent may have a
// directory of the same name.
func (h head) isOf(ref AgentRef) bool {
	return h.exists && (ref.Vendor == "" || h.vendor == "" || h.vendor == ref.Vendor) &&
		(h.agent == "" || h.agent == ref.Agent)
}

// head returns the identity of the agent of a directory.
func (l *lookup) head(dir string) head {
	h, known := l.heads[dir]
	if !known && !l.full {
		h = l.read(dir)
		l.heads[dir] = h
	}
	return h
}

// read reads the identity of the agent of a directory from its AGENTS.md.
func (l *lookup) read(dir string) head {
	if !l.isAgent(dir) {
		return head{}
	}
	f, err := tree.ReadFile(l.fsys, path.Join(dir, ManifestName), tree.MaxManifest)
	size := int64(len(f.Data))
	if err != nil {
		size = tree.MaxManifest // a file that is too large was read as far as that
	}
	if l.full = !l.budget.Take(size); l.full || err != nil {
		return head{}
	}
	h := head{exists: true}
	if a, _ := parseManifest(f.Data, ManifestName, &problem.List{}); a != nil {
		h.vendor, h.agent = a.VendorKey, a.AgentKey
	}
	return h
}

// isElement reports whether a name can be one element of a path.
func isElement(name string) bool { return tree.IsSafe(name) && !strings.Contains(name, "/") }

// isAgent reports whether a directory has an AGENTS.md and is reached without a symbolic link.
func (l *lookup) isAgent(dir string) bool {
	for at := path.Join(dir, ManifestName); at != "."; at = path.Dir(at) {
		info, err := fs.Lstat(l.fsys, at)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return false
		}
	}
	return true
}
