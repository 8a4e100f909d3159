package oaf

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// keys returns names in kebab-case.
func keys() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,5})?`)
}

// texts returns texts of one line that YAML could take for something else.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z][A-Za-z0-9 ,.:#'"{}%@!&*|>-]{0,40}[a-z]`),
		rapid.SampledFrom([]string{"yes", "1.10", "null", "a: b", "é ü 漢", "🙂", "~", "0x1F", "<<", "'", `"`}))
}

// plainAgent draws an agent that consists of its manifest.
func plainAgent(t *rapid.T, key string) *Agent {
	a := &Agent{Name: texts().Draw(t, "name"), VendorKey: "acme", AgentKey: key, Version: "1.10.0", Slug: "acme/" + key,
		Description: texts().Draw(t, "description"), Author: texts().Draw(t, "author"), License: "MIT",
		Tags: rapid.SliceOfN(texts(), 1, 3).Draw(t, "tags"), Tools: []string{"Read"},
		Body: "Be " + texts().Draw(t, "body")}
	a.Config.MaxTokens = rapid.IntRange(1, 9999).Draw(t, "tokens")
	a.Config.Denied = rapid.SliceOfN(keys(), 1, 3).Draw(t, "denied")
	return a
}

// TestManifestRoundTrip reads what Manifest writes, with all characters of strings and versions.
func TestManifestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := plainAgent(t, keys().Draw(t, "key"))
		text, err := a.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		got, problems := ParseManifest(text, problem.Lenient)
		if got == nil {
			t.Fatalf("no agent of\n%s", text)
			return
		}
		if p, bad := repute.FirstError(problems); bad {
			t.Fatalf("%+v\n%s", p, text)
		}
		for field, pair := range map[string][2]any{"name": {got.Name, a.Name}, "id": {got.ID(), a.ID()},
			"version": {got.Version, a.Version}, "description": {got.Description, a.Description},
			"author": {got.Author, a.Author},
			"tags":   {got.Tags, a.Tags}, "tools": {got.Tools, a.Tools},
			"tokens": {got.Config.MaxTokens, a.Config.MaxTokens},
			"denied": {got.Config.Denied, a.Config.Denied},
			"body":   {strings.TrimSpace(got.Body), strings.TrimSpace(a.Body)}} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Fatalf("%s: %q, want %q:\n%s", field, pair[0], pair[1], text)
			}
		}
		again, err := got.Manifest()
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("written again: %v\n%s\n%s", err, again, text)
		}
	})
}

// TestPackRoundTrip unpacks what Pack packs: the same files, and the same agents.
func TestPackRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var agents []*Agent
		files, want := map[string][]tree.File{}, []tree.File{}
		for _, key := range rapid.SliceOfNDistinct(keys(), 1, 3, rapid.ID).Draw(t, "agents") {
			a := plainAgent(t, key)
			written, err := a.Write()
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range rapid.SliceOfNDistinct(keys(), 0, 3, rapid.ID).Draw(t, "files") {
				written = append(written, tree.File{Path: "docs/" + name + ".md",
					Executable: rapid.Bool().Draw(t, "executable"),
					Data:       rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "data")})
			}
			agents, files[key] = append(agents, a), written
			want = append(want, tree.Within(key, written)...)
		}
		packed, err := Pack(agents, files)
		if err != nil {
			t.Fatal(err)
		}
		got, problems := Unpack(packed, problem.Lenient)
		if p, bad := repute.FirstError(problems); bad {
			t.Fatalf("%+v", p)
		}
		got = slices.DeleteFunc(got, func(f tree.File) bool { return f.Path == PackageName })
		byPath := func(a, b tree.File) int { return strings.Compare(a.Path, b.Path) }
		slices.SortFunc(got, byPath)
		slices.SortFunc(want, byPath)
		if !slices.EqualFunc(got, want, func(a, b tree.File) bool {
			return a.Path == b.Path && bytes.Equal(a.Data, b.Data) && a.Executable == b.Executable
		}) {
			t.Fatalf("got %d files, want %d", len(got), len(want))
		}
		pack, problems := LoadZip(packed, problem.Lenient)
		if p, bad := repute.FirstError(problems); bad || len(pack.Agents) != len(agents) || pack.Mode != ModeBundled {
			t.Fatalf("%+v, %d agents", p, len(pack.Agents))
		}
		for _, a := range agents {
			if !slices.ContainsFunc(pack.Agents, func(b *Agent) bool { return b.ID() == a.ID() && b.Name == a.Name }) {
				t.Fatalf("%s is not in the archive", a.ID())
			}
		}
	})
}

// TestPatterns compares patterns with regular expressions of the same meaning.
func TestPatterns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,6}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab]{0,8}`).Draw(t, "name")
		quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`)
		if want := regexp.MustCompile(`^` + quoted + `$`).MatchString(name); matches(pattern, name) != want {
			t.Fatalf("%q matches %q: %v", pattern, name, !want)
		}
	})
}

// TestAllows allows no tool that is excluded or disabled, whatever else selects it, and no unselected tool of a subset.
func TestAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab]{1,3}`)
		pattern := rapid.OneOf(name, rapid.StringMatching(`[ab]{0,2}\*`))
		s := Selection{Present: rapid.Bool().Draw(t, "present"),
			Excluded: rapid.SliceOfN(pattern, 0, 2).Draw(t, "excluded"),
			Strategy: rapid.SampledFrom([]string{StrategySubset, StrategyAll}).Draw(t, "strategy")}
		for range rapid.IntRange(0, 3).Draw(t, "tools") {
			s.Tools = append(s.Tools, SelectedTool{Name: pattern.Draw(t, "tool"),
				Enabled: rapid.Bool().Draw(t, "enabled")})
		}
		tool := name.Draw(t, "asked")
		of := func(p string) bool { return matches(p, tool) }
		selected := slices.ContainsFunc(s.Tools, func(x SelectedTool) bool { return x.Enabled && of(x.Name) })
		forbidden := slices.ContainsFunc(s.Excluded, of) ||
			slices.ContainsFunc(s.Tools, func(x SelectedTool) bool { return !x.Enabled && of(x.Name) })
		if want := !forbidden && (selected || !s.Present || s.Strategy == StrategyAll); s.Allows(tool) != want {
			t.Fatalf("%q of %+v: %v", tool, s, !want)
		}
	})
}

// TestGraph visits each agent that can be reached once, the first one first, also where agents name each other.
func TestGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agents := make([]*Agent, rapid.IntRange(1, 8).Draw(t, "agents"))
		for i := range agents {
			agents[i] = &Agent{Slug: fmt.Sprint("acme/", i)}
		}
		index := rapid.IntRange(-1, len(agents)-1) // -1: one that is registered and not local
		for _, a := range agents {
			for _, to := range rapid.SliceOfN(index, 0, 4).Draw(t, "refs") {
				ref := AgentRef{Vendor: "acme", Agent: fmt.Sprint(to)}
				if to >= 0 {
					ref.Local = agents[to]
				}
				a.Agents = append(a.Agents, ref)
			}
		}
		got := agents[0].Graph()
		seen := map[*Agent]bool{}
		for _, a := range got {
			if seen[a] {
				t.Fatalf("%s is there twice", a.ID())
			}
			seen[a] = true
		}
		for _, a := range got {
			for _, ref := range a.Agents {
				if ref.Local != nil && !seen[ref.Local] {
					t.Fatalf("%s names %s, which is left out", a.ID(), ref.Local.ID())
				}
			}
		}
		if got[0] != agents[0] {
			t.Fatal("the agent itself is not the first")
		}
	})
}
