package indexer

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute"
)

// Metrics counts what the followers and the documents loop of a process do. One
// value serves all of them.
type Metrics struct {
	head, indexed, finalized *prometheus.GaugeVec
	events, reorgs           *prometheus.CounterVec
	undecoded, stepErrors    *prometheus.CounterVec
	passed, upgrades         *prometheus.CounterVec
	waiting, suspects        *prometheus.CounterVec
	stalled                  *prometheus.GaugeVec
	steps                    *prometheus.HistogramVec
	lag                      *lagCollector
}

// NewMetrics makes the metrics and registers them. It panics when they are
// registered already, as prometheus does.
func NewMetrics(r prometheus.Registerer) *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"chain"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		head:      gauge("repute_chain_head_block", "Newest block the node reports."),
		indexed:   gauge("repute_chain_indexed_block", "Newest block stored."),
		finalized: gauge("repute_chain_finalized_block", "Newest block that is stored and finalized."),
		events:    counter("repute_events_total", "Registry events stored.", "chain", "kind"),
		reorgs:    counter("repute_reorgs_total", "Reorganizations handled.", "chain"),
		undecoded: counter("repute_undecoded_logs_total",
			"Logs of a registry that cannot be read, by reason; they are stored.", "chain", "reason"),
		passed: counter("repute_foreign_logs_total",
			"Logs that were answered and are no registry's events: passed over.", "chain"),
		upgrades: counter("repute_upgrades_total", "Upgrades of followed contracts seen.", "chain"),
		waiting: counter("repute_waiting_events_total", "Events stored that waited for one that was missing.",
			"chain"),
		suspects: counter("repute_bloom_suspects_total",
			"Blocks whose bloom names a registry though no log of it came, by what a second look found: logs, nothing where that is proven, or empty.", "chain", "found"),
		stalled:    gauge("repute_chain_stalled", "1 while the head is above the cursor and nothing is stored."),
		stepErrors: counter("repute_step_errors_total", "Indexing steps that failed.", "chain"),
		steps: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "repute_step_seconds",
			Help: "Duration of steps that stored a range.", Buckets: prometheus.ExponentialBuckets(0.005, 2.5, 10)},
			[]string{"chain"}),
		lag: &lagCollector{at: map[string]time.Time{}},
	}
	r.MustRegister(m.head, m.indexed, m.finalized, m.events, m.reorgs, m.undecoded, m.stepErrors, m.steps,
		m.passed, m.upgrades, m.waiting, m.suspects, m.stalled, m.lag)
	return m
}

// chainLabel returns the value of the label by which metrics name a chain.
func chainLabel(id uint64) string { return strconv.FormatUint(id, 10) }

// stored counts a committed batch.
func (m *Metrics) stored(chain string, to repute.Block, records []repute.Record) {
	m.indexed.WithLabelValues(chain).Set(float64(to.Number))
	m.lag.set(chain, to.Time)
	for _, r := range records {
		m.events.WithLabelValues(chain, r.Event.Kind().String()).Inc()
	}
}

// lagCollector computes lag when it is asked, so that it grows while nothing
// runs: a lag written by successful steps would freeze with them.
type lagCollector struct {
	mu sync.Mutex
	at map[string]time.Time // time of the indexed block by chain
}

var lagDesc = prometheus.NewDesc("repute_chain_lag_seconds", "Now minus the time of the indexed block.",
	[]string{"chain"}, nil)

// set stores the time of the newest indexed block. The lag is computed when the metric is read, so
// it grows while nothing is indexed.
func (c *lagCollector) set(chain string, t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[chain] = t
}

// Describe implements prometheus.Collector.
func (c *lagCollector) Describe(ch chan<- *prometheus.Desc) { ch <- lagDesc }

// Collect implements prometheus.Collector.
func (c *lagCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for chain, t := range c.at {
		ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, max(0, time.Since(t).Seconds()), chain)
	}
}
