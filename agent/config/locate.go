package config

import (
	"cmp"
	"path/filepath"
	"strings"

	"repute/agent/llm/modelfile"
)

// locate resolves relative paths against dir, the directory of the file; "" leaves them unchanged. Programs run in dir
// unless the file names another directory.
//
// It runs before the environment is read, so that paths of variables stay relative to the working directory.
func (c *Config) locate(dir string) {
	if dir == "" {
		return
	}
	below := func(path *string) {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	c.Agent.Key = modelfile.Located(c.Agent.Key, dir)
	c.Models.Locate(dir)
	if !strings.Contains(c.Policy.URI, "://") {
		below(&c.Policy.URI)
	}
	for i := range c.Capabilities {
		for _, h := range []*Handler{&c.Capabilities[i].Handler, c.Capabilities[i].Validates} {
			if h == nil {
				continue
			}
			below(&h.Dir)
			if len(h.Exec) > 0 {
				h.Dir = cmp.Or(h.Dir, dir)
				below(&h.Exec[0])
			}
			if h.MCP != nil && len(h.MCP.Command) > 0 {
				h.Dir = cmp.Or(h.Dir, dir)
				if strings.Contains(h.MCP.Command[0], "/") { // a name alone is looked for in PATH
					below(&h.MCP.Command[0])
				}
			}
			if h.OAF != nil {
				below(&h.OAF.Dir)
			}
		}
	}
}
