package oafagent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"repute/internal/modeltest"
	"repute/manifest/oaf"
)

// A server chooses the names of its tools: none of them gets what a list gives another server, a tool of it, or a tool
// of this runtime or of Claude Code.
func TestGrantedNames(t *testing.T) {
	for name, c := range map[string]struct {
		tool, entry string
		granted     bool
	}{
		"a tool":                     {"delete", "delete", true},
		"a tool of the server":       {"delete", "mcp__web__delete", true},
		"the server":                 {"files__read_file", "web", true},
		"its full name":              {"files__read_file", "web__files__read_file", true},
		"the server's own name":      {"web", "web", true},
		"a tool of another server":   {"files__read_file", "files__read_file", false},
		"one in the form of Claude":  {"mcp__files__read_file", "mcp__files__read_file", false},
		"all tools of the other":     {"files__x", "files__*", false},
		"another server":             {"Files", "files", false},
		"a vendor's server":          {"acme/files", "acme/files", false},
		"a tool of the runtime":      {"skill_file", "skill_file", false},
		"a tool of Claude Code":      {"read", "Read", false},
		"a part of a tool of Claude": {"bash(x)", "Bash", false},
		"an agent":                   {"agent_acme_helper", "agent_*", false},
	} {
		t.Run(name, func(t *testing.T) {
			other := servedAs(t, "files", "other")
			def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{servedAs(t, "web", c.tool), other},
				Config: oaf.Config{Allowed: []string{c.entry}}}
			s := modeltest.New(modeltest.Turn{Text: "end"})
			_, err := ask(t, s, def, nil)
			ok(t, err)
			if got := strings.Contains(strings.Join(s.Seen()[0].Tools, " "), "web__"); got != c.granted {
				t.Errorf("allowed: %v, tools %v", got, s.Seen()[0].Tools)
			}
			section, err := json.Marshal(map[string][]string{"readOnlyTools": {c.entry}})
			ok(t, err)
			def.Config, def.Harness = oaf.Config{RequireConfirmation: true}, map[string]json.RawMessage{"repute": section}
			s = modeltest.New(call("web__"+strings.NewReplacer("/", "_", "(", "_", ")", "_").Replace(c.tool), `{}`),
				modeltest.Turn{Text: "end"})
			_, err = ask(t, s, def, nil)
			ok(t, err)
			want := "nobody can be asked"
			if c.granted {
				want = "called " + c.tool
			}
			if told := last(s.Seen()[1]); !strings.Contains(told, want) {
				t.Errorf("read only: told %q, want %q", told, want)
			}
		})
	}
}
