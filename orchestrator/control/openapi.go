package control

import (
	"github.com/danielgtaylor/huma/v2"
)

// describeStatuses adds what some operations answer beside 200: something new, or something
// that goes on by itself.
func (c *Control) describeStatuses() {
	for path, status := range map[string]string{"/tasks": "201", "/agents": "201", "/ingress/openclaw/task": "201",
		"/treasury/policies/{slug}": "202",
		"/treasury/calls":           "202", "/treasury/transfers": "202", "/identities": "202",
		"/agents/{slug}/wallet": "202",
		"/feedback":             "202"} {
		item := c.server.API.OpenAPI().Paths[prefix+path]
		for _, op := range []*huma.Operation{item.Post, item.Put} {
			if op != nil {
				more := *op.Responses["200"]
				more.Description = map[string]string{"201": "Created", "202": "Accepted: it goes on by itself"}[status]
				op.Responses[status] = &more
			}
		}
	}
	c.server.API.OpenAPI().Paths[prefix+
		"/runs/{id}/events"].Get.Responses["204"] = &huma.Response{Description: "The run is over and nothing follows."}
}
