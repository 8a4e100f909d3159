package api

import (
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"repute/internal/httpapi"
)

// mountPlain adds the routes that are no typed operations.
func (a *API) mountPlain() {
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
