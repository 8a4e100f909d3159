package oaf

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"repute/manifest/oaf/problem"
)

// counted is a file system that counts how often each file is opened.
type counted struct {
	fstest.MapFS
	opened map[string]int
}

// Open implements fs.FS.
func (c counted) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.MapFS.Open(name)
}

// text returns a file with a text.
func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// references returns the line of agents with n references; name gives the key of each.
func references(n int, name func(i int) string) string {
	refs := make([]string, n)
	for i := range refs {
		refs[i] = "{agent: " + name(i) + "}"
	}
	return "agents: [" + strings.Join(refs, ", ") + "]"
}

// The AGENTS.md of a directory is read once to compare its names, whatever number of references means it.
func TestNamesAreReadOnce(t *testing.T) {
	t.Parallel()
	c := counted{fstest.MapFS{
		"a/AGENTS.md": text(manifestOf("agentKey: a", "slug: acme/a",
			references(200, func(int) string { return "b" }))),
		"b/AGENTS.md": text(manifestOf("agentKey: other", "slug: acme/other")),
	}, map[string]int{}}
	a, problems := Load(c, "a", problem.Lenient)
	if a == nil || a.Agents[0].Local != nil || !slices.Contains(codes(problems), problem.CodeAgentOther) ||
		c.opened["b/AGENTS.md"] != 1 {
		t.Errorf("b is opened %d times, codes %v", c.opened["b/AGENTS.md"], codes(problems))
	}
}

// References of one agent beyond a number are one error and are not looked for.
func TestReferencesAreBounded(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{maxReferences: false, maxReferences + 1: true, 10 * maxReferences: true} {
		c := counted{fstest.MapFS{}, map[string]int{}}
		c.MapFS["a/AGENTS.md"] = text(manifestOf("agentKey: a", "slug: acme/a",
			references(n, func(i int) string { return fmt.Sprint("b", i) })))
		for i := range n {
			c.MapFS[fmt.Sprintf("b%d/AGENTS.md", i)] = text(manifestOf("agentKey: other", "slug: acme/other"))
		}
		_, problems := Load(c, "a", problem.Lenient)
		opened := 0
		for name, times := range c.opened {
			if strings.HasPrefix(name, "b") {
				opened += times
			}
		}
		at := slices.IndexFunc(problems, func(p problem.Problem) bool { return p.Code == problem.CodeTooDeep })
		if (at >= 0) != want || opened != maxReferences || want && problems[at].Path != "/agents/256" {
			t.Errorf("%d references: %d files are opened, codes %v", n, opened, codes(problems))
		}
	}
}

// All agents that are read together look for others within one budget, whose end is an error.
func TestLookupsAreBounded(t *testing.T) {
	t.Parallel()
	c := counted{fstest.MapFS{}, map[string]int{}}
	const agents, each = 11, 200
	c.MapFS["a/AGENTS.md"] = text(manifestOf("agentKey: a", "slug: acme/a",
		references(agents, func(i int) string { return fmt.Sprint("b", i) })))
	for i := range agents {
		name := func(j int) string { return fmt.Sprintf("c%d-%d", i, j) }
		c.MapFS[fmt.Sprintf("b%d/AGENTS.md", i)] = text(manifestOf(fmt.Sprint("agentKey: b", i),
			fmt.Sprint("slug: acme/b", i), references(each, name)))
		for j := range each {
			c.MapFS[name(j)+"/AGENTS.md"] = text(manifestOf("agentKey: other", "slug: acme/other"))
		}
	}
	_, problems := Load(c, "a", problem.Lenient)
	opened := 0
	for name, times := range c.opened {
		if strings.HasPrefix(name, "c") {
			opened += times
		}
	}
	if opened > 2_000 || !slices.Contains(codes(problems), problem.CodeTooManyFiles) {
		t.Errorf("%d of %d files are opened, codes %v", opened, agents*each, codes(problems))
	}
}
