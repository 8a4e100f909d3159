package control

import (
	"github.com/danielgtaylor/huma/v2"

	"repute/orchestrator/control/rest"
)

// describeStatuses adds the success statuses of operations that answer another one than 200.
func (c *Control) describeStatuses() {
	c.router.AddStatus("201", "Created", "/tasks", "/agents", "/ingress/openclaw/task")
	c.server.API.OpenAPI().Paths[rest.Prefix+"/runs/{id}/events"].Get.Responses["204"] = &huma.Response{
		Description: "The run is over and nothing follows."}
}
