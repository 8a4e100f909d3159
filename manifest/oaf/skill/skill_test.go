package skill

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"repute"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

func file(text string) []tree.File { return []tree.File{{Path: FileName, Data: []byte(text)}} }

func codes(l *problem.List) string {
	var out []string
	for _, p := range l.Problems() {
		out = append(out, p.Code)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

func TestParseRules(t *testing.T) {
	head := func(lines string) string { return "---\n" + lines + "\n---\n\nDo it.\n" }
	for _, tc := range []struct{ name, text, codes string }{
		{"good", head("name: x\ndescription: Does it."), ""},
		{"plain", "Do it.\n", "WO781"},
		{"no description", head("name: x"), "WO784"},
		{"no name", head("description: Does it."), "WO782"},
		{"another name", head("name: y\ndescription: Does it."), "WO783"},
		{"upper case", head("name: X\ndescription: Does it."), "WO782"},
		{"double hyphen", head("name: x--y\ndescription: Does it."), "WO782"},
		{"long name", head("name: " + strings.Repeat("x", 65) + "\ndescription: Does it."), "WO782"},
		{"long description", head("name: x\ndescription: " + strings.Repeat("é", 1025)), "WO785"},
		{"description within", head("name: x\ndescription: " + strings.Repeat("é", 1024)), ""},
		{"long compatibility", head("name: x\ndescription: Does it.\ncompatibility: " + strings.Repeat("x", 501)),
			"WO789"},
		{"list of tools", head("name: x\ndescription: Does it.\nallowed-tools: [\"bash\", \"edit\"]"), "WO788"},
		{"map in brackets", head("name: x\ndescription: Does it.\nmetadata: {a: b}"), "WO787"},
		{"unknown member", head("name: x\ndescription: Does it.\nversion: 1"), "WO786"},
		{"metadata that is no object", head("name: x\ndescription: Does it.\nmetadata: none"), "WO729"},
		{"metadata that is no text", head("name: x\ndescription: Does it.\nmetadata:\n  a:\n    - b"), "WO729"},
		{"many tokens", head("name: x\ndescription: Does it.") + strings.Repeat("word ", 4000), "IO790"},
		{"long", head("name: x\ndescription: Does it.") + strings.Repeat("\nx", 600), "IO790"},
		{"no YAML", head("name: ["), "EO722"},
		{"repeated", head("name: x\nname: x\ndescription: Does it."), "EO723"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &problem.List{}
			s, ok := Parse("x", "skills/x", file(tc.text), l)
			if got := codes(l); got != tc.codes {
				t.Errorf("codes %q, want %q: %v", got, tc.codes, l.Problems())
			}
			if ok == (tc.codes == "EO722") || ok && !strings.HasPrefix(s.Body, "Do it.") {
				t.Errorf("read %v: %+v", ok, s)
			}
		})
	}
	l := &problem.List{}
	if _, ok := Parse("x", "skills/x", []tree.File{{Path: "a/SKILL.md"}}, l); ok || codes(l) != "WO780" {
		t.Errorf("a directory without SKILL.md is a skill: %v", l.Problems())
	}
}

// A member that the specification does not know is kept where the specification wants it, unless that place is taken.
func TestUnknownMembersBecomeMetadata(t *testing.T) {
	s, _ := Parse("x", "skills/x",
		file("---\nname: x\ndescription: d\nversion: 1.10\nauthor: me\nmodel:\n  - a\nmetadata:\n  author: you\n---\n\nDo it.\n"),
		&problem.List{})
	if want := map[string]string{"version": "1.10", "author": "you", "model": `["a"]`}; !reflect.DeepEqual(s.Metadata,
		want) {
		t.Errorf("metadata %v, want %v", s.Metadata, want)
	}
}

func TestTools(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " Read  Grep ": {"Read", "Grep"}, "Read, Grep": {"Read", "Grep"},
		"Bash(git add:*) Read": {"Bash(git add:*)", "Read"}, "Bash(a, b),C": {"Bash(a, b)", "C"}, "a) b": {"a)", "b"},
		"(a b": {"(a b"},
	} {
		if got := Tools(text); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestConform(t *testing.T) {
	s := Skill{Dir: "My Skill", Name: "My Skill", Body: "# Sum up\n\nDo it.", Compatibility: strings.Repeat("x", 600)}
	out, cut := s.Conform("my-skill")
	if out.Name != "my-skill" || out.Description != "Sum up" || len([]rune(out.Compatibility)) != maxCompatibility ||
		!slices.Equal(cut, []string{"compatibility"}) {
		t.Errorf("%+v, %v", out, cut)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"---\nname: x\ndescription: y\n---\n\nz\n",
		"---\nname: x\nallowed-tools: [a]\nmetadata: {a: {b: c}}\n---\n",
		"x", "---\n---", "---\r\ndescription: |\r\n  a\r\n\r\n  b\r\n---\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := Parse("x", "skills/x", file(string(b)), &problem.List{})
		if !ok {
			return
		}
		out, _ := s.Conform("x")
		files, err := out.Write()
		if err != nil {
			t.Fatal(err)
		}
		l := &problem.List{Profile: problem.Strict}
		again, ok := Parse("x", "skills/x", files, l)
		if _, bad := repute.FirstError(l.Problems()); !ok || bad {
			t.Fatalf("what is written is not strict: %v\n%s", l.Problems(), files[0].Data)
		}
		if again.Description != out.Description || again.Body != out.Body || !reflect.DeepEqual(again.Metadata,
			out.Metadata) {
			t.Errorf("written %+v, read %+v", out, again)
		}
	})
}
