package verify

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts the results of verifiers. One value serves all chains of a process.
type Metrics struct {
	missing, repaired *prometheus.CounterVec
	verified          *prometheus.GaugeVec
}

// NewMetrics creates the metrics and registers them. It panics if they are registered already, as
// prometheus does.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"chain", "kind"})
	}
	m := &Metrics{
		missing:  counter("repute_missing_events_total", "Events found to be missing from the index."),
		repaired: counter("repute_repaired_events_total", "Missing events that were found and put in their place."),
		verified: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "repute_chain_verified_block",
			Help: "Block at which the state of all agents was last compared with the chain."}, []string{"chain"}),
	}
	r.MustRegister(m.missing, m.repaired, m.verified)
	return m
}
