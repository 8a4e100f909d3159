package control

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/remote"
)

// Names of the files that agents publish.
const (
	registrationFile = "agent-registration.json"
	manifestFile     = "agent.json"
	logFile          = "agent_log.json"
)

// mountPlain adds the routes that are no typed operations.
func (c *Control) mountPlain() {
	// no slug has a point
	c.server.Echo.GET(rest.Prefix+"/agents/openapi.json", httpapi.Strict(nil, func(e echo.Context) error {
		return e.Blob(http.StatusOK, "application/openapi+json", remote.OpenAPI())
	}))
	params := []*huma.Param{
		httpapi.TextParam("id", "path", "of the run; of a root run the events of all runs below it come too"),
		httpapi.CountParam("Last-Event-ID", "header", 0, maxNumber,
			"number of the last event that was seen: what follows it is sent"),
		httpapi.CountParam("after", "query", 0, maxNumber, "the same for those who cannot set headers"),
	}
	c.server.Stream(httpapi.Route{Path: rest.Prefix + "/runs/{id}/events", ID: "follow-run", Params: params,
		Summary:     "Streams a run's events as server-sent events; the stream ends after run.finished",
		ContentType: "text/event-stream",
		Example:     "id: 7\nevent: phase.started\ndata: {\"runId\":\"run_06h0dtnoafk9oolgfc60k5q484\",\"phase\":\"plan\"}\n\n",
	}, httpapi.Strict(params, c.follow))
}
