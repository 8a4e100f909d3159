package control

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"repute/orchestrator/remote"
)

// Names of the files that agents publish.
const (
	registrationFile = "agent-registration.json"
	manifestFile     = "agent.json"
	logFile          = "agent_log.json"
)

// mountPlain adds what is no typed operation.
func (c *Control) mountPlain() {
	c.echo.GET(prefix+"/openapi.json", withQuery(nil, func(e echo.Context) error {
		return e.Blob(http.StatusOK, "application/openapi+json", c.openapi)
	}))
	c.echo.GET(prefix+"/agents/openapi.json", withQuery(nil, func(e echo.Context) error { // no slug has a point
		return e.Blob(http.StatusOK, "application/openapi+json", remote.OpenAPI())
	}))
	params := []*huma.Param{
		textParam("id", "path", "of the run; of a root run the events of all runs below it come too"),
		countParam("Last-Event-ID", "header", 0, maxNumber,
			"number of the last event that was seen: what follows it is sent"),
		countParam("after", "query", 0, maxNumber, "the same for those who cannot set headers"),
	}
	c.echo.GET(eventsRoute, withQuery(params, c.follow))
	c.describeFile(prefix+"/runs/{id}/events", "follow-run",
		"Streams a run's events as server-sent events; the stream ends after run.finished", "text/event-stream",
		"id: 7\nevent: phase.started\ndata: {\"runId\":\"run_06h0dtnoafk9oolgfc60k5q484\",\"phase\":\"plan\"}\n\n", params...)
}

// withQuery refuses parameters that a route does not have.
func withQuery(params []*huma.Param, handle echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		if err := checkQuery(e.Request().URL, params); err != nil {
			return err
		}
		return handle(e)
	}
}
