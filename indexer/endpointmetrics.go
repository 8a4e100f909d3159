package indexer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute"
)

// endpointMetrics count what each endpoint is asked and how it answers.
type endpointMetrics struct {
	requests *prometheus.CounterVec
	faults   *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	flying   *prometheus.GaugeVec
	state    *prometheus.GaugeVec
}

func newEndpointMetrics() *endpointMetrics {
	labels := []string{"chain", "host"}
	return &endpointMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "repute_endpoint_requests_total",
			Help: "Requests sent to an endpoint; one may hold several calls."}, labels),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "repute_endpoint_errors_total",
			Help: "Requests to an endpoint that failed, by class of failure."}, append(labels, "class")),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "repute_endpoint_seconds",
			Help: "Duration of requests to an endpoint.", Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}, labels),
		flying: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "repute_endpoint_in_flight",
			Help: "Requests to an endpoint under way."}, labels),
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "repute_endpoint_state",
			Help: "1 for the state an endpoint is in, 0 for the others."}, append(labels, "state")),
	}
}

func (m *endpointMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.faults, m.latency, m.flying, m.state}
}

// meter counts for one endpoint. A nil one counts nothing.
type meter struct {
	*endpointMetrics
	chain, host string
}

func (m *Metrics) endpoint(chainID uint64, host string) *meter {
	return &meter{m.endpoints, chainLabel(chainID), host}
}

// begin counts a request that is sent; what it returns is told how it ended.
func (m *meter) begin() func(outcome) {
	if m == nil {
		return func(outcome) {}
	}
	m.requests.WithLabelValues(m.chain, m.host).Inc()
	m.flying.WithLabelValues(m.chain, m.host).Inc()
	return func(o outcome) {
		m.flying.WithLabelValues(m.chain, m.host).Dec()
		m.latency.WithLabelValues(m.chain, m.host).Observe(float64(o.took) / float64(time.Second))
		if o.err != nil {
			m.faults.WithLabelValues(m.chain, m.host, Judge(o.err).Fault.String()).Inc()
		}
	}
}

// is publishes the endpoint's state.
func (m *meter) is(now repute.EndpointState) {
	if m == nil {
		return
	}
	for _, s := range []repute.EndpointState{repute.EndpointClosed, repute.EndpointOpen, repute.EndpointHalfOpen, repute.EndpointExcluded} {
		value := 0.0
		if s == now {
			value = 1
		}
		m.state.WithLabelValues(m.chain, m.host, string(s)).Set(value)
	}
}
