package oaf

import (
	"bytes"
	"os"
	"reflect"
	"testing"
	"unicode/utf8"

	"repute"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// seeds gives a target the manifests of the tests.
func seeds(f *testing.F) {
	for _, text := range []string{manifestOf(), manifestOf(bomb()), manifestOf("author: @a"), "---\n---\n",
		"---\r\nname: x\r\n---",
		"---\na: &a [*a]\n---\nx", "---\n? [a]\n: b\n---\nx", "---\nskills: [a, {b: c}]\nmodel: {name: 1.10}\n---\nx",
		"---\nmemory: {blocks: {a: {value: default}}}\nagents: [{agent: .., vendor: /}]\n<<: {a: b}\n---\n"} {
		f.Add([]byte(text))
	}
	b, err := os.ReadFile("testdata/team/coordinator/AGENTS.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

func FuzzParseManifest(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		a, problems := ParseManifest(b, problem.Strict)
		again, more := ParseManifest(b, problem.Strict)
		if !reflect.DeepEqual(a, again) || !reflect.DeepEqual(problems, more) {
			t.Error("a second reading differs")
		}
		if a == nil {
			if _, bad := repute.FirstError(problems); !bad {
				t.Error("no agent and no error")
			}
			return
		}
		text, err := a.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		written, _ := ParseManifest(text, problem.Lenient)
		if written == nil || written.Name != a.Name || written.Version != a.Version || written.Body != a.Body ||
			!reflect.DeepEqual(written.Harness, a.Harness) {
			t.Errorf("written as %q, read as %+v", text, written)
		}
	})
}

// parseSelection reads one ActiveMCP.json.
func parseSelection(b []byte, profile problem.Profile) (Selection, []problem.Problem) {
	list := &problem.List{Profile: profile}
	var s Server
	s.readSelection(b, selectionName, list)
	return s.Selection, list.Problems()
}

func FuzzParseSelection(f *testing.F) {
	for _, text := range []string{`{"selectedTools":[{"name":"a*b"}],"excludedTools":["*"]}`,
		`{"enabled_tools":["a"],"tool_config":{"x":[1]}}`,
		`[]`, `{"a":{"b":{}}}`, `{"selectedTools":"x","contextStrategy":1}`} {
		f.Add([]byte(text), "aab")
	}
	f.Fuzz(func(t *testing.T, b []byte, tool string) {
		s, _ := parseSelection(b, problem.Lenient)
		excluded := false
		for _, pattern := range s.Excluded {
			excluded = excluded || pattern == tool
		}
		if excluded && s.Allows(tool) || !s.Present {
			t.Errorf("%q is excluded and allowed", tool)
		}
	})
}

func FuzzLoadZip(f *testing.F) {
	f.Add(archive(f, entry{name: "helper/AGENTS.md", text: manifestOf()}, entry{name: "PACKAGE.yaml",
		text: "agents: [a]"}))
	f.Add(archive(f, entry{name: "../x", text: "x"},
		entry{name: "a/AGENTS.md", text: manifestOf("agents: [{agent: b}]")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		pack, problems := LoadZip(b, problem.Lenient)
		_, bad := repute.FirstError(problems)
		if len(pack.Agents) == 0 && len(problems) == 0 {
			t.Error("no agent and no problem")
		}
		files, _ := Unpack(b, problem.Lenient)
		for _, file := range files {
			if !tree.IsSafe(file.Path) || !utf8.ValidString(file.Path) {
				t.Errorf("unsafe path %q", file.Path)
			}
		}
		var again bytes.Buffer
		if err := tree.Zip(&again, files); err != nil && !bad {
			t.Errorf("pack what was unpacked: %v", err)
		}
	})
}
