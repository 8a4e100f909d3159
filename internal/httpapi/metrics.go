package httpapi

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are rate, errors and duration per route template. Labels are route templates and never paths, because every
// new value is a series for as long as the process lives.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	limited  prometheus.Counter
	// found has the series of each outcome: looking one up by its labels costs more than counting.
	found sync.Map // of outcome to series
}

// outcome identifies the series of a request. There are few: routes are those of the router, in its form.
type outcome struct {
	method, route string
	status        int
}

// series are the metrics that a request with an outcome is counted in.
type series struct {
	requests prometheus.Counter
	duration prometheus.Observer
}

// newMetrics creates the metrics of requests and registers them.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "repute_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "repute_http_request_duration_seconds", Help: "Time to answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "repute_http_requests_in_flight", Help: "Requests being answered.",
		}),
		limited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "repute_http_requests_limited_total", Help: "Requests refused by the rate limit.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight, m.limited} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// begin counts a request in; end counts it out.
func (m *metrics) begin() { m.inFlight.Inc() }

// end counts a request that was begun. route is in the router's form.
func (m *metrics) end(method, route string, status int, took time.Duration) {
	m.inFlight.Dec()
	of := m.seriesOf(outcome{knownMethod(method), route, status})
	of.requests.Inc()
	of.duration.Observe(took.Seconds())
}

// seriesOf returns the metrics of an outcome.
func (m *metrics) seriesOf(o outcome) *series {
	if found, ok := m.found.Load(o); ok {
		return found.(*series)
	}
	route := routeOf(o.route)
	of := &series{m.requests.WithLabelValues(o.method, route, strconv.Itoa(o.status)),
		m.duration.WithLabelValues(o.method, route)}
	m.found.Store(o, of)
	return of
}

// knownMethod replaces unknown methods, which would create unbounded label values.
func knownMethod(method string) string {
	switch method {
	case "GET", "POST", "OPTIONS", "PUT", "DELETE", "PATCH":
		return method
	}
	return "other"
}
