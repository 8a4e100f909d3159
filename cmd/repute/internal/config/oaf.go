package config

import (
	"fmt"
	"path/filepath"

	"repute"
	"repute/agent/llm/modelfile"
	"repute/internal/strictjson"
)

// OAFFile is the file that orchestrator.oaf names: language models, and the agents of the Open Agent Format that
// they drive.
type OAFFile struct {
	Models modelfile.Table `json:"models"`
	Agents []OAFAgent      `json:"agents"`
}

// OAFAgent is a directory with an agent, which its local sub-agents come with. They get nothing of Programs and
// Env, but by entries of their own.
type OAFAgent struct {
	// Dir is relative to the file.
	Dir string `json:"dir"`
	// Programs allows programs that the agent brings: MCP servers on standard input and output, and scripts.
	Programs bool `json:"programs"`
	// Env are the variables of the environment that the agent's files may name as ${NAME}.
	Env []string `json:"env"`
}

// maxOAF bounds the file, in bytes.
const maxOAF = 1 << 20

// OAF reads the file of orchestrator.oaf; an empty one where there is none.
func (c *Config) OAF() (f OAFFile, err error) {
	path := c.Orchestrator.OAF
	if path == "" {
		return f, nil
	}
	const field = "orchestrator.oaf"
	text, err := strictjson.ReadFile(field, path, maxOAF)
	if err != nil {
		return f, err
	}
	raw, err := strictjson.FromYAML(field, text, "models and agents")
	if err != nil {
		return f, err
	}
	document := strictjson.Document{Name: field, Unknown: "is not known", Hint: "models, agents; docs/reference/oaf.md"}
	if err := document.Decode(raw, &f); err != nil {
		return f, err
	}
	for i := range f.Agents {
		if f.Agents[i].Dir == "" {
			return f, repute.Invalid(fmt.Sprintf("%s.agents.%d.dir", field, i), "is missing",
				"a directory with an AGENTS.md")
		}
		if !filepath.IsAbs(f.Agents[i].Dir) {
			f.Agents[i].Dir = filepath.Join(filepath.Dir(path), f.Agents[i].Dir)
		}
	}
	f.Models.Locate(filepath.Dir(path))
	return f, f.Models.Check(field + ".models")
}
