package control

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Names of the files that agents publish.
const (
	registrationFile = "agent-registration.json"
	manifestFile     = "agent.json"
	logFile          = "agent_log.json"
)

// mountPlain adds what is no typed operation.
func (c *Control) mountPlain() {
	c.echo.GET(prefix+"/openapi.json", func(e echo.Context) error {
		return e.Blob(http.StatusOK, "application/openapi+json", c.openapi)
	})
	c.echo.GET(eventsRoute, c.follow)
	c.describeFile(prefix+"/runs/{id}/events", "follow-run", "A run's events as they happen, as server-sent events; ends after run.finished", "text/event-stream",
		textParam("id", "path", "of the run; of a root run the events of all runs below it come too"),
		textParam("Last-Event-ID", "header", "number of the last event that was seen: what follows it is sent"),
		textParam("after", "query", "the same for those who cannot set headers"))
}
