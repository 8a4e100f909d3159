package documents

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute/store/docstats"
)

// Metrics counts the work of a process's loop and shows the queue, which all processes share.
type Metrics struct {
	documents          *prometheus.CounterVec
	planned, due, dead *prometheus.GaugeVec
	oldest             *prometheus.GaugeVec
}

// NewMetrics creates the metrics and registers them. It panics if they are registered already, as
// prometheus does.
func NewMetrics(r prometheus.Registerer) *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"rank"})
	}
	m := &Metrics{
		documents: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "repute_documents_total",
			Help: "Documents fetched, by source and failure reason."}, []string{"source", "reason"}),
		planned: gauge("repute_documents_planned", "Documents with a next fetch, by rank: new, agent, proof or file."),
		due:     gauge("repute_documents_due", "Documents that wait to be fetched now, by rank."),
		dead:    gauge("repute_documents_dead", "Documents that failed permanently or too often, by rank."),
		oldest: gauge("repute_documents_oldest_due_seconds",
			"For how long the document waits that waits longest, by rank."),
	}
	r.MustRegister(m.documents, m.planned, m.due, m.dead, m.oldest)
	return m
}

// fetched counts one fetch by the source of the document or the reason of the failure.
func (m *Metrics) fetched(source, reason string) { m.documents.WithLabelValues(source, reason).Inc() }

// queued publishes the state of the queue by rank. The oldest due document shows whether workers
// keep up.
func (m *Metrics) queued(queue []docstats.RankQueue) {
	for _, q := range queue {
		rank := q.Rank.String()
		m.planned.WithLabelValues(rank).Set(float64(q.Planned))
		m.due.WithLabelValues(rank).Set(float64(q.Due))
		m.dead.WithLabelValues(rank).Set(float64(q.Dead))
		waits := 0.0
		if !q.Oldest.IsZero() {
			waits = max(0, time.Since(q.Oldest).Seconds())
		}
		m.oldest.WithLabelValues(rank).Set(waits)
	}
}
