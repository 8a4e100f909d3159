package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute"
)

// Metrics count runs and their phases.
type Metrics struct {
	phases *prometheus.HistogramVec
	runs   *prometheus.CounterVec
}

// NewMetrics makes metrics and registers them; nil: not registered.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "repute_run_phase_seconds",
			Help:    "Time of the phases of runs.",
			Buckets: prometheus.ExponentialBuckets(.001, 4, 9)}, []string{"phase", "status"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "repute_runs_total",
			Help: "Root runs that ended, or stopped to wait."}, []string{"status"}),
	}
	if r != nil {
		r.MustRegister(m.phases, m.runs)
	}
	return m
}

// Phase measures how long a phase took.
func (m *Metrics) Phase(p repute.Phase, s repute.PhaseStatus, took time.Duration) {
	m.phases.WithLabelValues(p.String(), string(s)).Observe(took.Seconds())
}

// Ended counts a run that ended.
func (m *Metrics) Ended(s repute.RunStatus) { m.runs.WithLabelValues(string(s)).Inc() }
