package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"repute"

	"github.com/labstack/echo/v4"
)

// readyTimeout bounds all checks of /readyz together.
const readyTimeout = 3 * time.Second

// health is the body of /healthz and /readyz.
type health struct {
	Status string  `json:"status"` // ok or unavailable
	Checks []check `json:"checks,omitempty"`
}

// check is one thing readiness depends on.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// healthz says that the process runs, nothing more: a database that is away is
// no reason to restart it.
func (a *API) healthz(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, health{Status: "ok"})
}

// readyz says whether questions can be answered now, and if not, why.
func (a *API) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	h, status := health{Status: "ok", Checks: a.checks(ctx)}, http.StatusOK
	for _, one := range h.Checks {
		if !one.OK {
			h.Status, status = "unavailable", http.StatusServiceUnavailable
			c.Response().Header().Set("Retry-After", "5")
		}
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(status, h)
}

func (a *API) checks(ctx context.Context) []check {
	database := check{Name: "database", OK: true}
	if err := a.db.Ping(ctx); err != nil {
		// Its words may hold host and user: they go to the log only.
		a.log.WarnContext(ctx, "not ready", "check", "database", "error", err)
		return []check{{Name: "database", Reason: "the database does not answer"}}
	}
	return append([]check{database, a.checkChains(ctx)}, a.checkCaller(ctx)...)
}

// checkChains wants at least one chain with a block.
func (a *API) checkChains(ctx context.Context) check {
	chains, err := a.db.Chains(ctx)
	switch {
	case err != nil:
		a.log.WarnContext(ctx, "not ready", "check", "chains", "error", err)
		return check{Name: "chains", Reason: "the chains cannot be read"}
	case len(chains) == 0:
		return check{Name: "chains", Reason: "no chain is configured"}
	}
	for _, c := range chains {
		if indexed(c) {
			return check{Name: "chains", OK: true}
		}
	}
	return check{Name: "chains", Reason: "no chain has been indexed yet"}
}

// indexed: the cursor has left its place before the start block.
func indexed(c repute.ChainStatus) bool {
	return c.AsOf.Block.Number >= c.StartBlock && len(c.Completeness.Ranges) > 0
}

func (a *API) checkCaller(ctx context.Context) []check {
	if a.ready == nil {
		return nil
	}
	err := a.ready(ctx)
	if err == nil {
		return []check{{Name: "service", OK: true}}
	}
	reason := withoutSecrets(err.Error())
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "did not answer in time"
	}
	return []check{{Name: "service", Reason: reason}}
}
