package oafagent_test

import (
	"os"
	"strings"
	"testing"

	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	"repute/manifest/oaf"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// A skill whose files cannot be written runs no script, tells the model so, and leaves nothing behind. Files that leave
// their directory are not written.
func TestSkillsThatCannotBeUnpacked(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	script := tree.File{Path: "scripts/s.sh", Data: []byte("echo ran"), Executable: true}
	for name, files := range map[string][]tree.File{
		"a file that is a directory, too": {{Path: "a", Data: []byte("x")}, {Path: "a/b", Data: []byte("y")}, script},
		"a file outside":                  {{Path: "../outside.sh", Data: []byte("x")}, script},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.New(call("skill_script", `{"name":"sums","path":"scripts/s.sh"}`),
				modeltest.Turn{Text: "end"})
			def := &oaf.Agent{Slug: "acme/a", Body: "x",
				LocalSkills: []skill.Skill{{Dir: "sums", Name: "sums", Description: "adds",
					Body: "Run it.", Files: files}}}
			_, err := ask(t, s, def, func(o *oafagent.Options) { o.Programs = true })
			ok(t, err)
			if got := last(s.Seen()[1]); !strings.Contains(got, "cannot be written") || strings.Contains(got, "ran") {
				t.Errorf("the model is told %q", got)
			}
			left, err := os.ReadDir(temp)
			ok(t, err)
			if len(left) > 0 {
				t.Errorf("%d directories are left", len(left))
			}
		})
	}
}
