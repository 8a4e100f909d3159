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
	hosts := c.Hosts()
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

// isSite reports whether an entry of allowed_hosts is a site; others are names.
func isSite(entry string) bool { return strings.Contains(entry, "://") }

// Hosts are the names of allowed_hosts.
func (c *Config) Hosts() []string { return slices.DeleteFunc(slices.Clone(c.AllowedHosts), isSite) }

// Origins are the sites whose pages may call tools: those of the operator and our own.
func (c *Config) Origins() []string {
	sites := slices.DeleteFunc(slices.Clone(c.AllowedHosts), func(s string) bool { return !isSite(s) })
	if own := c.Orchestrator.PublicURL; own != "" {
		sites = append(sites, own)
	}
	return sites
}
