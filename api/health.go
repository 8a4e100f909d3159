package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
)

// mountHealth adds the routes that operators and their programs ask: health, readiness and metrics.
func (a *API) mountHealth() {
	s := a.server
	s.Get(httpapi.Route{Path: "/healthz", ID: "health", ContentType: jsonType, Example: health{Status: "ok"},
		Summary: "Reports that the process runs; it asks nothing of the database"}, a.healthz)
	s.Get(httpapi.Route{Path: "/readyz", ID: "ready", ContentType: jsonType,
		Example: health{Status: "ok", Checks: []check{{Name: "database", OK: true}, {Name: "chains", OK: true}}},
		Summary: "Reports whether the process can answer questions now; 503 with the checks that failed where not"},
		a.readyz)
	s.Get(httpapi.Route{Path: "/metrics", ID: "metrics", ContentType: "text/plain", Example: "repute_redis_up 1\n",
		Summary: "Metrics of this process in the text format of Prometheus"},
		echo.WrapHandler(promhttp.HandlerFor(s.Registry,
			promhttp.HandlerOpts{Registry: s.Registry, DisableCompression: true})))
}

// readyTimeout bounds all checks of /readyz together.
const readyTimeout = 3 * time.Second

// health is the body of /healthz and /readyz.
type health struct {
	Status string  `json:"status"` // ok or unavailable
	Checks []check `json:"checks,omitempty"`
}

// check is one condition of readiness.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// healthz reports that the process runs and nothing more: an unavailable database is no reason to
// restart it.
func (a *API) healthz(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, health{Status: "ok"})
}

// readyz reports whether requests can be answered now, and otherwise why not.
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

// checks returns the conditions of readiness. Concurrent callers share one database request.
func (a *API) checks(ctx context.Context) []check {
	stored := a.readiness.get(func() []check { return a.checkStore(ctx) })
	if !stored[0].OK {
		return stored
	}
	return append(stored[:len(stored):len(stored)], a.checkCaller(ctx)...)
}

// readyAge is how long an answer about readiness is reused, so that any number of callers cause one
// database request per second.
const readyAge = time.Second

// readiness caches the last answer. The zero value has none.
type readiness struct {
	mu   sync.Mutex // held during the request, so that concurrent callers get the same answer
	at   time.Time
	last []check
}

// get calls ask if the last answer is too old. The answer that nothing is indexed yet is not
// cached, because it is cheap and may change at any moment.
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

// checkStore requires a database that answers and at least one chain with a block. The caller's
// context only limits the time, because others wait for the answer.
func (a *API) checkStore(ctx context.Context) []check {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	known, indexed, err := a.DB.Ready(ctx)
	if err != nil {
		// The error may contain host and user, and is only logged.
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

// checkCaller calls Options.Ready.
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
	// The index is readable while its nodes are unavailable.
	return []check{{Name: "service", OK: errors.Is(err, repute.ErrUnavailable), Reason: reason}}
}
