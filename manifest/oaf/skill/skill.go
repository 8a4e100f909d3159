// Package skill reads and writes Agent Skills: directories with a SKILL.md, as agentskills.io describes them.
//
// Parse accepts what published skills have and reports what the specification forbids; members that it does not know
// are kept in the metadata, where the specification wants them. Write writes the form that its reference validator
// accepts, and Conform makes a skill that fits under a name, for harnesses that refuse others. Scripts are data here.
package skill

import (
	"strings"

	"repute/manifest/oaf/tree"
)

// Limits of the fields, in characters.
const (
	MaxName          = 64
	MaxDescription   = 1024
	maxCompatibility = 500
)

// Skill is one skill: what SKILL.md says, and the files next to it.
type Skill struct {
	Dir           string // name of its directory
	Name          string // as SKILL.md says, else Dir
	Description   string // what it does and when to use it; "" where SKILL.md does not say
	License       string
	Compatibility string            // environment that it needs, for people
	Metadata      map[string]string // free data of its author, and members that the specification does not know
	AllowedTools  []string          // tools that it may use without a question; empty for no statement
	ToolsLine     int               // line of AllowedTools in SKILL.md, from 1; 0 where no file has it
	Body          string            // the instructions, with LF line ends
	Files         []tree.File       // all files but SKILL.md, ordered by path: scripts/, references/, assets/, resources/
}

// Scripts returns the files below scripts/. They are data until a runtime decides to execute them.
func (s Skill) Scripts() []tree.File {
	var out []tree.File
	for _, f := range s.Files {
		if strings.HasPrefix(f.Path, "scripts/") {
			out = append(out, f)
		}
	}
	return out
}
