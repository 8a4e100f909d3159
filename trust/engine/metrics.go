package engine

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute/store/scoredb"
)

// Metrics counts what engines do. All values are by chain id.
type Metrics struct {
	epoch, stale, oldest *prometheus.GaugeVec
	agents               *prometheus.CounterVec
	walks, batches       *prometheus.HistogramVec
}

// NewMetrics makes and registers metrics; nil registers them nowhere.
func NewMetrics(r prometheus.Registerer) *Metrics {
	labels := []string{"chain"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, from float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(from, 4, 8)}, labels)
	}
	m := &Metrics{
		epoch:  gauge("repute_trust_epoch", "Epoch of the newest weights."),
		stale:  gauge("repute_trust_stale", "Agents whose score must be looked at."),
		oldest: gauge("repute_trust_stale_age_seconds", "How long the first of them has waited."),
		agents: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "repute_trust_scored_total",
			Help: "Agents scored."},
			labels),
		walks: histogram("repute_trust_walk_seconds", "Reading a chain's graph and walking it.", 0.01),
		batches: histogram("repute_trust_score_seconds", "Scoring some agents, from reading evidence to storing.",
			0.001),
	}
	if r != nil {
		r.MustRegister(m.epoch, m.stale, m.oldest, m.agents, m.walks, m.batches)
	}
	return m
}

// label is the chain's label of metrics.
func label(chain uint64) string { return strconv.FormatUint(chain, 10) }

// set exposes the epoch, the stale agents and how long the oldest of them waits.
func (m *Metrics) set(s scoredb.State) {
	m.epoch.WithLabelValues(label(s.ChainID)).Set(float64(s.Epoch))
	m.stale.WithLabelValues(label(s.ChainID)).Set(float64(s.Stale))
	age := 0.0
	if !s.Oldest.IsZero() {
		age = max(0, time.Since(s.Oldest).Seconds())
	}
	m.oldest.WithLabelValues(label(s.ChainID)).Set(age)
}

// walked measures a walk of the graph.
func (m *Metrics) walked(chain uint64, took time.Duration) {
	m.walks.WithLabelValues(label(chain)).Observe(took.Seconds())
}

// scored counts a batch of agents that were scored.
func (m *Metrics) scored(chain uint64, agents int, took time.Duration) {
	m.agents.WithLabelValues(label(chain)).Add(float64(agents))
	m.batches.WithLabelValues(label(chain)).Observe(took.Seconds())
}
