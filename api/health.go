package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/api/wire"
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

// checks answers for readiness. The database is asked once for all callers of a moment.
func (a *API) checks(ctx context.Context) []check {
	stored := a.readiness.get(func() []check { return a.checkStore(ctx) })
	if !stored[0].OK {
		return stored
	}
	return append(stored[:len(stored):len(stored)], a.checkCaller(ctx)...)
}

// readyAge is how long an answer of the database about readiness holds, so that
// any number of callers cost it one question a second.
const readyAge = time.Second

// readiness remembers the last answer. The zero value has none.
type readiness struct {
	mu   sync.Mutex // held while asking: who comes meanwhile gets the same answer
	at   time.Time
	last []check
}

// get asks when the last answer is too old. That nothing is indexed yet is not
// kept: the question is cheap, and the next answer may be another one.
func (r *readiness) get(ask func() []check) []check {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < readyAge {
		return r.last
	}
	r.last, r.at = ask(), time.Now()
	if r.last[0].OK && !r.last[1].OK {
		r.at = time.Time{}
	}
	return r.last
}

// checkStore wants a database that answers and at least one chain with a block.
// The caller's context gives no more than the time: others wait for the answer.
func (a *API) checkStore(ctx context.Context) []check {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	known, indexed, err := a.DB.Ready(ctx)
	if err != nil {
		// Its words may hold host and user: they go to the log only.
		a.log.WarnContext(ctx, "not ready", "check", "database", "error", err)
		return []check{{Name: "database", Reason: "the database does not answer"}}
	}
	chains := check{Name: "chains", OK: indexed}
	switch {
	case !known:
		chains.Reason = "no chain is configured"
	case !indexed:
		chains.Reason = "no chain has been indexed yet"
	}
	return []check{{Name: "database", OK: true}, chains}
}

// checkCaller asks the process around the API whether it can do its part.
func (a *API) checkCaller(ctx context.Context) []check {
	if a.ready == nil {
		return nil
	}
	err := a.ready(ctx)
	if err == nil {
		return []check{{Name: "service", OK: true}}
	}
	reason := wire.WithoutSecrets(err.Error())
	if errors.Is(err, context.DeadlineExceeded) {
		reason = "did not answer in time"
	}
	// What is indexed can be asked for while its nodes are away.
	return []check{{Name: "service", OK: errors.Is(err, repute.ErrUnavailable), Reason: reason}}
}
