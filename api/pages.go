package api

import (
	"repute/api/graph"
	"repute/web"
)

// mountPages adds the pages for people, which ask GraphQL alone.
func (a *API) mountPages(g *graph.Endpoint) error {
	return web.Mount(web.Options{Server: a.server, GraphQL: g})
}
