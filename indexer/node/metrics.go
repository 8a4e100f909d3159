package node

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/indexer/node/jsonrpc"
	"repute/indexer/node/limit"
)

// Metrics counts requests to the endpoints of Pools, the calls in them, and their outcomes. One value
// serves all chains of a process.
type Metrics struct {
	requests         *prometheus.CounterVec
	faults           *prometheus.CounterVec
	latency          *prometheus.HistogramVec
	flying           *prometheus.GaugeVec
	state            *prometheus.GaugeVec
	calls, callFails *prometheus.CounterVec
}

// NewMetrics creates the metrics and registers them. It panics if they are registered already, as
// prometheus does.
func NewMetrics(r prometheus.Registerer) *Metrics {
	labels := []string{"chain", "host"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		requests: counter("repute_endpoint_requests_total", "Requests sent to an endpoint; one may hold several calls.",
			labels...),
		faults: counter("repute_endpoint_errors_total", "Requests to an endpoint that failed, by class of failure.",
			"chain", "host", "class"),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "repute_endpoint_seconds",
			Help: "Duration of requests to an endpoint.", Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)}, labels),
		flying: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "repute_endpoint_in_flight",
			Help: "Requests to an endpoint under way."}, labels),
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "repute_endpoint_state",
			Help: "1 for the state an endpoint is in, 0 for the others."}, []string{"chain", "host", "state"}),
		calls:     counter("repute_rpc_calls_total", "JSON-RPC calls sent.", "chain", "method"),
		callFails: counter("repute_rpc_errors_total", "JSON-RPC calls that failed.", "chain", "method"),
	}
	r.MustRegister(m.requests, m.faults, m.latency, m.flying, m.state, m.calls, m.callFails)
	return m
}

// meter counts the requests to one endpoint, and their calls by chain. A nil meter counts nothing.
type meter struct {
	*Metrics
	chain, host string
}

// meter returns the meter of an endpoint.
func (m *Metrics) meter(chainID uint64, host string) *meter {
	return &meter{m, strconv.FormatUint(chainID, 10), host}
}

// begin counts a request that is sent. The caller MUST call the returned function with the outcome.
func (m *meter) begin() func(limit.Outcome) {
	if m == nil {
		return func(limit.Outcome) {}
	}
	m.requests.WithLabelValues(m.chain, m.host).Inc()
	m.flying.WithLabelValues(m.chain, m.host).Inc()
	return func(o limit.Outcome) {
		m.flying.WithLabelValues(m.chain, m.host).Dec()
		m.latency.WithLabelValues(m.chain, m.host).Observe(float64(o.Took) / float64(time.Second))
		if o.Err != nil {
			m.faults.WithLabelValues(m.chain, m.host, jsonrpc.Diagnose(o.Err).Fault.String()).Inc()
		}
	}
}

// call counts one call of a request that ended.
func (m *meter) call(method string, failed bool) {
	if m == nil {
		return
	}
	m.calls.WithLabelValues(m.chain, method).Inc()
	if failed {
		m.callFails.WithLabelValues(m.chain, method).Inc()
	}
}

// is publishes the endpoint's state.
func (m *meter) is(now repute.EndpointState) {
	if m == nil {
		return
	}
	for _, s := range []repute.EndpointState{repute.EndpointClosed, repute.EndpointOpen, repute.EndpointHalfOpen,
		repute.EndpointExcluded} {
		value := 0.0
		if s == now {
			value = 1
		}
		m.state.WithLabelValues(m.chain, m.host, string(s)).Set(value)
	}
}
