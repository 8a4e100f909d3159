package skill

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// words returns texts that YAML and Markdown could take for their own.
func words() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z][A-Za-z0-9 ,.:#'"{}%@!&*|>-]{0,40}[a-z]`),
		rapid.SampledFrom([]string{"yes", "1.10", "- a", "{{ x }}", "a: b", "é 漢 🙂", "#x", "~", "---", "a\nb", "|",
			"[a]"}))
}

// aSkill draws a skill as a file may have it.
func aSkill(t *rapid.T) Skill {
	s := Skill{Dir: "x", Name: "x", Description: words().Draw(t, "description"), License: words().Draw(t, "license"),
		Compatibility: words().Draw(t, "compatibility"), Body: strings.TrimSpace(words().Draw(t, "body"))}
	s.AllowedTools = rapid.SliceOfN(rapid.SampledFrom([]string{"Read", "Bash(git add:*)", "mcp__a__b"}), 0, 3).Draw(t,
		"tools")
	if rapid.Bool().Draw(t, "metadata") {
		s.Metadata = rapid.MapOfN(rapid.StringMatching(`[a-z-]{1,6}`), words(), 1, 3).Draw(t, "metadata")
	}
	for _, name := range []string{"assets/a.png", "references/r.md", "resources/x", "scripts/s.sh"} {
		if rapid.Bool().Draw(t, name) {
			s.Files = append(s.Files, tree.File{Path: name, Data: []byte(name),
				Executable: strings.HasPrefix(name, "scripts/")})
		}
	}
	return s
}

// A skill that is written is the same skill when it is read, without a problem for a publisher.
func TestWriteThenParseIsTheSameSkill(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := aSkill(t)
		files, err := s.Write()
		if err != nil {
			t.Fatal(err)
		}
		l := &problem.List{Profile: problem.Strict}
		got, ok := Parse("x", "skills/x", files, l)
		if !ok || l.Len() > 0 {
			t.Fatalf("%v\n%s", l.Problems(), files[0].Data)
		}
		if len(s.AllowedTools) == 0 {
			s.AllowedTools = nil
		}
		if s.ToolsLine = got.ToolsLine; !reflect.DeepEqual(got, s) || (s.ToolsLine > 0) != (s.AllowedTools != nil) {
			t.Fatalf("%+v became %+v", s, got)
		}
		if scripts := got.Scripts(); len(scripts) > 1 || len(scripts) == 1 && !scripts[0].Executable {
			t.Fatalf("scripts %+v", scripts)
		}
	})
}

// Whatever a skill says, the specification accepts it after Conform, and what was shortened is named.
func TestConformIsStrict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := aSkill(t)
		s.Name = rapid.StringMatching(`[A-Za-z -]{0,80}`).Draw(t, "name")
		long := rapid.IntRange(0, 1500).Draw(t, "length")
		s.Description = rapid.SampledFrom([]string{"", " \n", strings.Repeat("é", long),
			strings.Repeat("a b\n", long)}).Draw(t, "long description")
		s.Compatibility = strings.Repeat("漢", long)
		out, changed := s.Conform("good-name")
		files, err := out.Write()
		if err != nil {
			t.Fatal(err)
		}
		l := &problem.List{Profile: problem.Strict}
		if _, ok := Parse("good-name", "skills/good-name", files, l); !ok || l.Len() > 0 {
			t.Fatalf("%v\n%.300s", l.Problems(), files[0].Data)
		}
		if slices.Contains(changed, "compatibility") != (long > maxCompatibility) {
			t.Fatalf("%d characters, changed %v", long, changed)
		}
	})
}

// truncate keeps the beginning of a text, within its length in characters.
func TestTruncate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, most := rapid.StringN(0, 20, -1).Draw(t, "text"), rapid.IntRange(1, 20).Draw(t, "most")
		got := truncate(text, most)
		if utf8.RuneCountInString(got) > most || (got != text) != (utf8.RuneCountInString(text) > most) {
			t.Fatalf("%q became %q, at most %d", text, got, most)
		}
		if got != text && !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) && utf8.ValidString(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// Names of tools are found wherever one is separated from the next by a space or a comma outside parentheses.
func TestToolsDividesWhatIsJoined(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tools := rapid.SliceOfN(rapid.SampledFrom([]string{"Read", "Bash(git add:*, x)", "Bash(a (b) c)", "mcp__a__b",
			"x-y"}), 1, 5).Draw(t, "tools")
		text := strings.Join(tools, rapid.SampledFrom([]string{" ", ", ", ",", "  ", "\n"}).Draw(t, "separator"))
		if got := Tools(text); !slices.Equal(got, tools) {
			t.Fatalf("%q is divided into %q", text, got)
		}
	})
}

// A skill without a readable SKILL.md is none, and its other files are not lost on the way there.
func TestUnreadableSkills(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, code string
	}{
		"no text":         {"---\nname: x\x00\n---\n", problem.CodeEncoding},
		"not UTF-8":       {"\xff", problem.CodeEncoding},
		"list":            {"---\n- a\n---\n", problem.CodeNotObject},
		"aliases":         {"---\na: &a [*a]\n---\n", problem.CodeAlias},
		"long":            {"---\na: " + strings.Repeat("x", 65<<10) + "\n---\n", problem.CodeLongHead},
		"two documents":   {"---\na: b\n...\nc: d\n---\n", problem.CodeYAML},
		"alias of nobody": {"---\na: *b\n---\n", problem.CodeYAML},
	} {
		l := &problem.List{}
		if _, ok := Parse("x", "skills/x", file(c.text), l); ok || codes(l) != c.code {
			t.Errorf("%s: read %v, %v", name, ok, l.Problems())
		}
	}
	for name, want := range map[string]bool{"a": true, "a-b1": true, "": false, "-a": false, "a-": false, "a--b": false,
		"A": false, "ä": false,
		strings.Repeat("a", MaxName): true, strings.Repeat("a", MaxName+1): false, "a/b": false, "..": false} {
		if isName(name) != want {
			t.Errorf("%q is a name: %v", name, !want)
		}
	}
}
