package main

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"repute/internal/httpapi"
	"repute/orchestrator/control"
)

// guard stands in front of every route of the listener.
func (c *config) guard() (*httpapi.Guard, error) {
	hosts := slices.Clone(c.AllowedHosts)
	if u, err := url.Parse(c.Orchestrator.PublicURL); err == nil && u.Host != "" {
		hosts = append(hosts, u.Hostname())
	}
	return httpapi.NewGuard(httpapi.GuardOptions{Hosts: hosts, Origins: c.origins(), Public: isPublic})
}

// checkGuard refuses hosts and origins that are none.
func (c *config) checkGuard() error {
	_, err := c.guard()
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
