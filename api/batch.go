package api

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"repute/api/batch"
	"repute/internal/httpapi"
)

// batchPath is the path of the reputations of many agents.
const batchPath = "/reputation:batch"

// mountBatch adds the reputations of many agents.
func (a *API) mountBatch() {
	httpapi.Post[batch.ReputationsRequest, batch.ReputationsAnswer](a.server,
		httpapi.Route{Path: batchPath, ID: "batch-reputation",
			ContentType: jsonType,
			Summary:     "Returns the reputations of up to 500 agents, wallets and domains, from one state of the index"},
		httpapi.Strict(nil, a.batch))
}

// batch serves POST /reputation:batch.
func (a *API) batch(c echo.Context) error {
	body, err := io.ReadAll(c.Request().Body) // httpapi bounds it
	if err != nil {
		return err
	}
	r, err := batch.ParseRequest(body)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	found, err := batch.Read(ctx, a.Index, r.Agents)
	if err != nil {
		return err
	}
	w, err := found.Answer(ctx)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, w)
}
