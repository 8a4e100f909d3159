package httpapi

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are rate, errors and duration per route template.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	limited  prometheus.Counter
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

// begin counts a request in; the function it returns counts it out.
func (m *metrics) begin() func(method, route string, status int, took time.Duration) {
	m.inFlight.Inc()
	return func(method, route string, status int, took time.Duration) {
		m.inFlight.Dec()
		method = knownMethod(method)
		m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
		m.duration.WithLabelValues(method, route).Observe(took.Seconds())
	}
}

// knownMethod replaces unknown methods, which would create unbounded label values.
func knownMethod(method string) string {
	switch method {
	case "GET", "POST", "OPTIONS", "PUT", "DELETE", "PATCH":
		return method
	}
	return "other"
}
