package api

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/store"
	"repute/store/query"
)

// indexAge is how long metrics reuse an answer about the index; indexTimeout bounds one database
// request.
const (
	indexAge     = 5 * time.Second
	indexTimeout = 10 * time.Second
)

// indexCollector exports the status of every chain when it is scraped, whichever process wrote it:
// the same facts as /status.
type indexCollector struct {
	db  *store.DB
	log *slog.Logger

	mu     sync.Mutex // held during the request, so that concurrent scrapes get the same answer
	at     time.Time
	chains []repute.ChainStatus
	err    error

	readable *prometheus.Desc
	gauges   []chainGauge
	labeled  []labeledGauge
}

// chainGauge is one number of a chain; false omits it.
type chainGauge struct {
	desc  *prometheus.Desc
	value func(repute.ChainStatus) (float64, bool)
}

// labeledGauge is numbers of a chain by one more label.
type labeledGauge struct {
	desc *prometheus.Desc
	each func(s repute.ChainStatus, put func(label string, value float64))
}

// newIndexCollector returns a collector that reads the index when it is scraped.
func newIndexCollector(db *store.DB, log *slog.Logger) *indexCollector {
	c := &indexCollector{db: db, log: log,
		readable: prometheus.NewDesc("repute_index_readable",
			"1 when the database answered the question about the chains.",
			nil, nil)}
	c.freshness()
	c.troubles()
	c.amounts()
	c.coverage()
	return c
}

// gauge declares a metric with at most one value per chain.
func (c *indexCollector) gauge(name, help string, value func(repute.ChainStatus) (float64, bool)) {
	c.gauges = append(c.gauges, chainGauge{prometheus.NewDesc("repute_index_"+name, help, []string{"chain"}, nil),
		value})
}

// count declares a number that is always known.
func (c *indexCollector) count(name, help string, value func(repute.ChainStatus) int64) {
	c.gauge(name, help, func(s repute.ChainStatus) (float64, bool) { return float64(value(s)), true })
}

// block declares a block number that is unknown while it is 0.
func (c *indexCollector) block(name, help string, value func(repute.ChainStatus) uint64) {
	c.gauge(name, help, func(s repute.ChainStatus) (float64, bool) { return float64(value(s)), value(s) > 0 })
}

// flag declares a metric that is 1 or 0 for each chain.
func (c *indexCollector) flag(name, help string, value func(repute.ChainStatus) bool) {
	c.count(name, help, func(s repute.ChainStatus) int64 {
		if value(s) {
			return 1
		}
		return 0
	})
}

// freshness declares how far the index is behind.
func (c *indexCollector) freshness() {
	c.block("block", "Newest indexed block.", func(s repute.ChainStatus) uint64 { return s.Block.Number })
	c.block("head_block", "The node's head when last asked.", func(s repute.ChainStatus) uint64 { return s.Head })
	c.block("safe_block", "Newest safe block.", func(s repute.ChainStatus) uint64 { return s.Safe })
	c.block("finalized_block", "Newest finalized block.", func(s repute.ChainStatus) uint64 { return s.Finalized })
	c.gauge("lag_seconds", "Now minus the time of the newest indexed block.",
		func(s repute.ChainStatus) (float64, bool) {
			if s.LagSeconds == nil {
				return 0, false
			}
			return float64(*s.LagSeconds), true
		})
}

// troubles declares the metrics for alerts.
func (c *indexCollector) troubles() {
	c.flag("complete", "1 when every final block is indexed and proven, but for those of ten minutes.",
		func(s repute.ChainStatus) bool { return s.Completeness.Status == repute.Complete })
	c.flag("unproven", "1 when final blocks were compared and nothing proves what they hold.",
		func(s repute.ChainStatus) bool { return s.Completeness.Status == repute.Unproven })
	c.block("proven_block", "Block up to which every block from the start on is proven; 0 for none.",
		func(s repute.ChainStatus) uint64 { return s.Completeness.VerifiedTo })
	c.flag("halted", "1 when stopped by a reorganization below finality.",
		func(s repute.ChainStatus) bool { return s.Halted })
	c.flag("stalled", "1 when the head moves and nothing is stored.",
		func(s repute.ChainStatus) bool { return s.Stalled })
	c.flag("failing", "1 when the indexing loop complains (lastError).", repute.ChainStatus.Failing)
	c.count("waiting_events", "Stored events that wait for a missing one.",
		func(s repute.ChainStatus) int64 { return s.Completeness.Pending })
	c.count("undecoded_logs", "Stored logs that nobody can read.",
		func(s repute.ChainStatus) int64 { return s.Completeness.Undecoded })
	c.count("endpoints", "JSON-RPC endpoints asked, counted per process.",
		func(s repute.ChainStatus) int64 { return int64(len(s.Endpoints)) })
	c.count("endpoints_working", "Those of them that answer: circuit closed.", func(s repute.ChainStatus) (n int64) {
		for _, e := range s.Endpoints {
			if e.State == repute.EndpointClosed {
				n++
			}
		}
		return n
	})
	c.block("scores_epoch", "Epoch of the newest weights of raters.",
		func(s repute.ChainStatus) uint64 { return s.Scoring.Epoch })
	c.count("scores_stale", "Agents whose scores must be looked at.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Stale })
	c.count("records",
		"Live ratings, and latest answers of validation contracts, at the end of the newest closed epoch.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Coverage.Records.All })
	c.count("records_counted", "Those of them that count in scores.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Coverage.Records.Counted })
	c.count("agents_judged", "Agents of which records are, at the end of the newest closed epoch.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Coverage.Agents.All })
	c.count("agents_rated", "Those of them that are rated.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Coverage.Rated })
	c.count("agents_thin", "Those of them of which few trusted raters speak.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Coverage.Thin })
	c.count("raters", "Addresses that wrote these records.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Coverage.Raters.All })
	c.count("raters_counted", "Those of them of which a record counts in scores.",
		func(s repute.ChainStatus) int64 { return s.Scoring.Coverage.Raters.Counted })
	c.block("scores_verified_block", "Block up to which all blocks were proven when the newest final scores were made.",
		func(s repute.ChainStatus) uint64 { return s.Scoring.VerifiedTo })
	c.flag("scores_verified", "1 when the newest final scores follow from proven blocks alone.",
		func(s repute.ChainStatus) bool { return s.Scoring.Verified })
	c.gauge("lift_dollars",
		"Published prices of the credentials that lift a new agent to 50; absent where out of reach.",
		func(s repute.ChainStatus) (float64, bool) {
			lift := s.Scoring.Coverage.ToFifty
			if lift == nil || lift.OutOfReach {
				return 0, false
			}
			return float64(lift.Cents) / 100, true
		})
	c.flag("scores_late", "1 when nobody keeps scores up with events, or nobody keeps any.",
		func(s repute.ChainStatus) bool { return s.Scoring.Late })
	c.count("reorgs", "Rewinds since the chain was added.", func(s repute.ChainStatus) int64 { return s.Reorgs })
	c.count("upgrades", "Upgrades of the registries seen.", func(s repute.ChainStatus) int64 { return s.Upgrades })
}

// amounts declares how much is indexed.
func (c *indexCollector) amounts() {
	c.count("agents", "Agents.", func(s repute.ChainStatus) int64 { return s.Agents })
	c.count("feedback", "Live ratings.", func(s repute.ChainStatus) int64 { return s.Feedback })
	c.count("uris", "Distinct document URIs.", func(s repute.ChainStatus) int64 { return s.URIs })
	c.count("uris_due", "Document URIs waiting to be fetched.", func(s repute.ChainStatus) int64 { return s.URIsDue })
	kind := func(name, help string, value func(repute.KindCompleteness) float64) {
		c.by("kind", name, help, func(s repute.ChainStatus, put func(string, float64)) {
			for _, k := range s.Completeness.Kinds {
				put(k.Kind.String(), value(k))
			}
		})
	}
	kind("open_gaps", "Events known to be missing.", func(k repute.KindCompleteness) float64 { return float64(k.Open) })
	kind("verified_block", "Newest block at which state was compared with the chain's own; 0 for never.",
		func(k repute.KindCompleteness) float64 { return float64(k.VerifiedTo) })
}

// by declares a metric with values by one more label.
func (c *indexCollector) by(label, name, help string, each func(repute.ChainStatus, func(string, float64))) {
	c.labeled = append(c.labeled,
		labeledGauge{prometheus.NewDesc("repute_index_"+name, help, []string{"chain", label}, nil), each})
}

// coverage declares why records do not count, and what sources give.
func (c *indexCollector) coverage() {
	c.by("reason", "records_left", "Records that do not count in scores, by the reason.",
		func(s repute.ChainStatus, put func(string, float64)) {
			for reason, n := range s.Scoring.Coverage.Left {
				put(reason, float64(n))
			}
		})
	c.by("source", "records_by_source", "Records that count whose rater has weight by a source of first weight.",
		func(s repute.ChainStatus, put func(string, float64)) {
			for source, n := range s.Scoring.Coverage.BySource {
				put(source, float64(n))
			}
		})
	c.by("source", "source_read", "1 where the source was read completely for the newest final scores.",
		func(s repute.ChainStatus, put func(string, float64)) {
			for _, state := range s.Scoring.Sources {
				read := 0.0
				if state.Status == repute.SourceOK {
					read = 1
				}
				put(state.Source, read)
			}
		})
}

// Describe implements prometheus.Collector.
func (c *indexCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.readable
	for _, g := range c.gauges {
		ch <- g.desc
	}
	for _, g := range c.labeled {
		ch <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (c *indexCollector) Collect(ch chan<- prometheus.Metric) {
	chains, err := c.look()
	if err != nil {
		ch <- prometheus.MustNewConstMetric(c.readable, prometheus.GaugeValue, 0)
		return
	}
	ch <- prometheus.MustNewConstMetric(c.readable, prometheus.GaugeValue, 1)
	for _, s := range chains {
		label := strconv.FormatUint(s.Chain.ID, 10)
		for _, g := range c.gauges {
			if v, known := g.value(s); known {
				ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, v, label)
			}
		}
		for _, g := range c.labeled {
			g.each(s, func(by string, value float64) {
				ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, label, by)
			})
		}
	}
}

// look reads the status of all chains, at most once per indexAge.
func (c *indexCollector) look() ([]repute.ChainStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < indexAge {
		return c.chains, c.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), indexTimeout)
	defer cancel()
	if c.chains, c.err = query.Chains(ctx, c.db); c.err != nil {
		c.log.Warn("metrics of the index are missing", "error", c.err)
	}
	c.at = time.Now()
	return c.chains, c.err
}
