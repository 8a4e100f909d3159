package config

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v4"

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

// OAFAgent is a directory with an agent, which its local sub-agents come with.
type OAFAgent struct {
	// Dir is relative to the file.
	Dir string `json:"dir"`
	// Programs allows programs that the agents bring: MCP servers on standard input and output, and scripts.
	Programs bool `json:"programs"`
	// Env are the variables of the environment that the agents' files may name as ${NAME}.
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
	file, err := os.Open(path)
	if err != nil {
		return f, repute.Invalid(field, err.Error(), "a readable YAML file")
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxOAF+1))
	if err != nil || len(text) > maxOAF {
		return f, repute.Invalid(field, "cannot be read, or is larger than 1 MiB", "a readable YAML file")
	}
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return f, repute.Invalid(field, fmt.Sprintf("%.300s", err.Error()), "YAML")
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return f, repute.Invalid(field, "is no YAML of texts, numbers, lists and objects", "models and agents")
	}
	document := strictjson.Document{Name: field, Unknown: "is not known", Hint: "models, agents; docs/reference/oaf.md"}
	if err := document.Decode(raw, &f); err != nil {
		return f, err
	}
	for i := range f.Agents {
		if f.Agents[i].Dir == "" {
			return f, repute.Invalid(fmt.Sprintf("%s.agents.%d.dir", field, i), "is missing", "a directory with an AGENTS.md")
		}
		if !filepath.IsAbs(f.Agents[i].Dir) {
			f.Agents[i].Dir = filepath.Join(filepath.Dir(path), f.Agents[i].Dir)
		}
	}
	return f, f.Models.Check(field + ".models")
}
