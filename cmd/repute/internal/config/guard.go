package config

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"repute/internal/httpapi"
	"repute/orchestrator/control"
)

// Guard stands in front of every route of the listener.
func (c *Config) Guard() (*httpapi.Guard, error) {
	hosts := slices.Clone(c.AllowedHosts)
	if u, err := url.Parse(c.Orchestrator.PublicURL); err == nil && u.Host != "" {
		hosts = append(hosts, u.Hostname())
	}
	return httpapi.NewGuard(httpapi.GuardOptions{Hosts: hosts, Origins: c.Origins(), Public: isPublic})
}

// checkGuard refuses hosts and origins that are none.
func (c *Config) checkGuard() error {
	_, err := c.Guard()
	return err
}

// isPublic reports whether a request reads what everybody may know: the index by REST or
// GraphQL, and the orchestrator's agents with their files.
func isPublic(r *http.Request) bool {
	path := r.URL.Path
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return !control.IsPrivate(path) && path != "/admin" && !strings.HasPrefix(path, "/admin/")
	}
	return r.Method == http.MethodPost && path == "/graphql"
}

// mcpConfig says which sites' pages may use this service, beside programs.
type mcpConfig struct {
	// Sites, scheme://host[:port], whose pages may call tools, change things and read runs.
	Origins []string `yaml:"origins"`
}

// Origins are the sites whose pages may call tools: those of the operator and our own.
func (c *Config) Origins() []string {
	if own := c.Orchestrator.PublicURL; own != "" {
		return append(slices.Clone(c.MCP.Origins), own)
	}
	return c.MCP.Origins
}
