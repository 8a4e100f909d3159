package main

import (
	"slices"

	"repute/mcp"
)

// mcpConfig says who may ask the tools, beside programs.
type mcpConfig struct {
	Origins []string `yaml:"origins"` // scheme://host[:port] of sites whose pages may
}

// origins are the sites whose pages may call tools: those of the operator and our own.
func (c *config) origins() []string {
	if own := c.Orchestrator.PublicURL; own != "" {
		return append(slices.Clone(c.MCP.Origins), own)
	}
	return c.MCP.Origins
}

// checkTools refuses origins that are none.
func (c *config) checkTools() error {
	_, err := mcp.New(mcp.Options{Origins: c.origins()})
	return err
}

// tools makes a server without tools yet.
func (s *service) tools() (*mcp.Server, error) {
	return mcp.New(mcp.Options{Version: version, Origins: s.config.origins(), Logger: s.log})
}
