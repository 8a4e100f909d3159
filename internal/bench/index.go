package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"repute"
	"repute/internal/bench/harness"
	"repute/internal/synth"
)

// IndexOptions say what Index measures.
type IndexOptions struct {
	Program harness.Program
	Node    harness.Program // serves a history when started as node
	Dir     string          // of the generated histories
	Events  int             // of the history of every mode
	// Modes are measured in their order. The first one alone has several runs and the yardsticks, and the shares of
	// COPY in the targets are of it.
	Modes    []string  // how the node behaves, of ModeNames
	Runs     int       // of the first mode and of the yardsticks; other modes run once
	Curve    []int     // further sizes of history, with an honest node
	Busy     int       // feedback of the busy history, 0 for none of that
	Progress io.Writer // lines for a person; nil: none
}

// clean is the mode of an honest node. Its runs are also the point of the curve whose size is IndexOptions.Events.
const clean = "clean"

// modes are how a node may behave: its flag for it. The name of a mode is in reports and in docs/bench, so that a
// changed flag needs a new name.
var modes = map[string]string{
	clean:        clean,
	"range":      "range=10000",
	"rate":       "rate=20",
	lossy:        "lossy",
	"latency20":  "latency=20ms",
	"latency100": "latency=100ms",
}

// lossy is the mode of the node whose answers the index must repair by comparing
// all state with the chain. What is measured is that it does: the history is
// shorter, and the rate of calls, made for nodes of others, is lifted.
const (
	lossy       = "lossy"
	lossyEvents = 100_000
	lossyRate   = 100_000 // calls per second
	lossyWait   = 5 * time.Minute
)

// ModeNames lists the modes there are.
func ModeNames() []string {
	return []string{clean, "range", "rate", lossy, "latency20", "latency100"}
}

// check refuses unknown modes before anything is generated or started.
func (o IndexOptions) check() error {
	for _, name := range o.Modes {
		if modes[name] == "" {
			return repute.Invalid("modes", "unknown mode "+name, "any of "+strings.Join(ModeNames(), ","))
		}
	}
	if len(o.Modes) == 0 {
		return repute.Invalid("modes", "there is none", "any of "+strings.Join(ModeNames(), ","))
	}
	return nil
}

// What an index must reach.
const (
	// The yardsticks' time by that of indexing: with 0.60 an index takes 1.7 times as long as COPY of the rows that it
	// ends with. Raw events are the rows of one table, with its primary key as the only index.
	shareOfFinalRows = 0.60
	shareOfRawEvents = 0.15
	// callsPer2000 leaves out headers: one eth_getLogs for so many events, however few a block has.
	callsPer2000 = 1
	// Memory must not grow with the history: the limit is for the largest of the curve, and includes Go's own.
	peakMB = 400
	// Busy blocks are those of IndexOptions.Busy. Their time counts from the start of the process.
	busySeconds = 1.5
	busyPeakMB  = 150
	// curveSpread is how much more an event may cost at one size of history than
	// at another.
	curveSpread = 1.5
)

// IndexMeasurements is what Index found.
type IndexMeasurements struct {
	Modes      map[string]Measured `json:"modes"`
	Yardsticks Yardsticks          `json:"yardsticks"`
	// Curve is in the order of IndexOptions.Curve; empty where no sizes were asked for.
	Curve []CurvePoint `json:"curve"`
	Busy  *Measured    `json:"busy,omitempty"`
}

// Measured are the runs of one configuration.
type Measured struct {
	Node    string  `json:"node"` // how it behaved
	Events  int     `json:"events"`
	Seconds float64 `json:"median_seconds"`
	PeakMB  float64 `json:"highest_rss_mb"`
	// Runs are in their order. Only the first is compared with the history, so that Exact of the others is false.
	Runs []Run `json:"runs"`
}

// Yardsticks are what Postgres takes without an indexer: the same rows, through
// one connection, in the same number of transactions, on the same server between
// the runs.
type Yardsticks struct {
	// Transactions is how many the first run of the index took, at least 1. The rows are stored in as many, because
	// each commit waits for the disk.
	Transactions int       `json:"transactions"`
	FinalRows    int       `json:"final_rows"`
	FinalSeconds []float64 `json:"final_rows_seconds"`
	FinalMedian  float64   `json:"final_rows_median_seconds"`
	FinalCPU     []float64 `json:"final_rows_postgres_cpu_seconds"`
	RawSeconds   []float64 `json:"raw_events_seconds"`
	RawMedian    float64   `json:"raw_events_median_seconds"`
	RawCPU       []float64 `json:"raw_events_postgres_cpu_seconds"`
}

// CurvePoint is the cost of an event in a history of one size.
type CurvePoint struct {
	Events         int     `json:"events"`
	MicrosPerEvent float64 `json:"microseconds_per_event"`
	PeakMB         float64 `json:"peak_rss_mb"`
	Exact          bool    `json:"dump_equal"`
}

// Index measures how fast histories are indexed: by the product, in a process of
// its own, from a node in another one, into an empty, running, migrated Postgres.
// The error is repute.ErrInvalid for modes that do not exist. An index that differs from
// its history is no error: a target says so.
func Index(ctx context.Context, o IndexOptions) (r harness.Report, err error) {
	if err := o.check(); err != nil {
		return r, err
	}
	r = harness.Report{Name: "index", Config: map[string]any{"events": o.Events, "modes": o.Modes, "runs": o.Runs,
		"curve": o.Curve, "busy": o.Busy, "seed": harness.Seed}}
	say := harness.Progress{To: o.Progress}
	return harness.OnServer(ctx, say, r, false, func(server *harness.Server) (any, []harness.Target, error) {
		b := &indexBench{Progress: say, o: o, server: server, m: IndexMeasurements{Modes: map[string]Measured{}}}
		if err := b.measure(ctx); err != nil {
			return nil, nil, err
		}
		return b.m, b.targets(), nil
	})
}

// indexBench is one call of Index. Histories are opened and databases made one after the other: two at once would
// share the processors that are measured.
type indexBench struct {
	harness.Progress
	o      IndexOptions
	server *harness.Server
	m      IndexMeasurements
}

// measure runs the modes first, so that the curve can use the run of an honest node. The first failure ends it: a
// report of some modes would look like a whole one.
func (b *indexBench) measure(ctx context.Context) error {
	for i, name := range b.o.Modes {
		if err := b.mode(ctx, name, i == 0); err != nil {
			return fmt.Errorf("mode %s: %w", name, err)
		}
	}
	if b.o.Busy > 0 {
		if err := b.busy(ctx); err != nil {
			return fmt.Errorf("busy: %w", err)
		}
	}
	return b.curve(ctx)
}

// history opens a history, which is generated when it is asked for first.
func (b *indexBench) history(ctx context.Context, shape synth.Shape, events int) (*synth.History, error) {
	start := time.Now()
	h, err := synth.Open(ctx, b.o.Dir, specOf(shape, events))
	if err == nil && time.Since(start) > time.Second {
		b.Say("generated a %s history of %d events in %s", shape, events, time.Since(start).Round(time.Second))
	}
	return h, err
}

// indexing is a run that is compared with the history. Its time limit is a minute and a millisecond for each event,
// many times of what indexing takes: it ends a run that hangs, and is no target.
func (b *indexBench) indexing(h *synth.History, mode string) *indexing {
	return &indexing{indexBench: b, history: h, mode: modes[mode], compare: true,
		timeout: time.Minute + time.Duration(h.Events())*time.Millisecond}
}

// mode measures one behavior of the node, the first one several times with the
// yardsticks in between.
func (b *indexBench) mode(ctx context.Context, name string, first bool) error {
	events := b.o.Events
	if name == lossy {
		events = min(events, lossyEvents)
	}
	h, err := b.history(ctx, synth.Base, events)
	if err != nil {
		return err
	}
	defer h.Close()
	x := b.indexing(h, name)
	if name == lossy {
		x.settle, x.verifyRate = lossyWait, lossyRate
	}
	n := 1
	if x.keepRows = first; first {
		n = b.o.Runs
	}
	b.m.Modes[name], err = b.runs(ctx, name, x, n)
	return err
}

// runs indexes n times. Where the rows of the first run are kept, the yardsticks follow each run, so that a machine
// that slows down slows both sides of the share.
func (b *indexBench) runs(ctx context.Context, name string, x *indexing, n int) (m Measured, err error) {
	m = Measured{Node: x.mode, Events: x.history.Events()}
	var kept *rows
	defer func() {
		if kept != nil {
			_ = kept.remove() // under the temporary directory
		}
	}()
	for range n {
		run, captured, err := x.run(ctx)
		if err != nil {
			return m, err
		}
		m.Runs = append(m.Runs, run)
		b.Say("%s %d: %.2f s (indexer %.2f s, Postgres %.2f s), %.0f events/s, %d requests, %.2f calls per 2,000 events, %.0f MB%s", name,
			x.history.Events(), run.Seconds, run.CPU, run.PostgresCPU, run.EventsPerS, run.Requests, run.CallsPer2000,
			run.PeakMB,
			verdict(x.compare, run))
		if captured != nil {
			kept, x.keepRows = captured, false
		}
		x.compare = false // what one run made of the history, another will
		if kept != nil {
			if err := b.yardsticks(ctx, kept, m.Runs[0].Transactions); err != nil {
				return m, err
			}
		}
	}
	m.summarize()
	return m, nil
}

// verdict is the end of a run's line of progress: what the comparison of the dumps found, "" where there was none.
func verdict(compared bool, r Run) string {
	switch {
	case !compared:
		return ""
	case r.Exact:
		return ", dump equal"
	}
	return ", dump differs: " + r.Difference
}

// summarize takes the median time and the highest memory: one of several runs may be disturbed.
func (m *Measured) summarize() {
	var seconds []float64
	for _, r := range m.Runs {
		seconds = append(seconds, r.Seconds)
		m.PeakMB = max(m.PeakMB, r.PeakMB)
	}
	m.Seconds = harness.Median(seconds)
}

// yardsticks stores the rows without an indexer, each time into a database of its own. Every call adds one time to each
// list, of which the medians count.
func (b *indexBench) yardsticks(ctx context.Context, all *rows, transactions int) error {
	y := &b.m.Yardsticks
	y.Transactions, y.FinalRows = max(1, transactions), all.count()
	final, finalCPU, err := b.timed(ctx,
		func(d *harness.Database) (time.Duration, error) { return all.storeAll(ctx, d, y.Transactions) })
	if err != nil {
		return err
	}
	raw, rawCPU, err := b.timed(ctx,
		func(d *harness.Database) (time.Duration, error) { return all.storeRaw(ctx, d, y.Transactions) })
	if err != nil {
		return err
	}
	b.Say("yardsticks: %d final rows %.2f s (Postgres %.2f s), raw events %.2f s (%.2f s), %d transactions",
		y.FinalRows,
		final, finalCPU,
		raw, rawCPU, y.Transactions)
	y.FinalSeconds, y.FinalCPU = append(y.FinalSeconds, final), append(y.FinalCPU, finalCPU)
	y.RawSeconds, y.RawCPU = append(y.RawSeconds, raw), append(y.RawCPU, rawCPU)
	y.FinalMedian, y.RawMedian = harness.Median(y.FinalSeconds), harness.Median(y.RawSeconds)
	return nil
}

// timed runs fn on a fresh database and returns the seconds it took, by the clock
// and of the server's processor.
func (b *indexBench) timed(ctx context.Context, fn func(*harness.Database) (time.Duration, error)) (clock, cpu float64,
	err error) {
	d, err := b.server.Fresh(ctx)
	if err != nil {
		return 0, 0, err
	}
	took, err := fn(d)
	if err != nil {
		return 0, 0, err
	}
	used, err := d.CPU(ctx)
	return took.Seconds(), used.Seconds(), err
}

// busy measures full blocks of feedback, the case in which a block costs most. The yardsticks are not measured again:
// the targets are absolute.
func (b *indexBench) busy(ctx context.Context) error {
	h, err := b.history(ctx, synth.Busy, b.o.Busy)
	if err != nil {
		return err
	}
	defer h.Close()
	m, err := b.runs(ctx, "busy", b.indexing(h, clean), b.o.Runs)
	b.m.Busy = &m
	return err
}

// curve measures histories of several sizes; that of the modes is known already.
func (b *indexBench) curve(ctx context.Context) error {
	for _, events := range b.o.Curve {
		m, known := b.m.Modes[clean]
		if !known || events != b.o.Events {
			var err error
			if m, err = b.size(ctx, events); err != nil {
				return fmt.Errorf("%d events: %w", events, err)
			}
		}
		b.m.Curve = append(b.m.Curve, CurvePoint{Events: events, MicrosPerEvent: m.Seconds * 1e6 / float64(m.Events),
			PeakMB: m.PeakMB,
			Exact:  m.Runs[0].Exact})
	}
	return nil
}

// size measures one history of the curve, by one run that is compared with it.
func (b *indexBench) size(ctx context.Context, events int) (Measured, error) {
	h, err := b.history(ctx, synth.Base, events)
	if err != nil {
		return Measured{}, err
	}
	defer h.Close()
	return b.runs(ctx, "curve", b.indexing(h, clean), 1)
}

// targets judges what was measured. Their number and names depend on the options, which the report's Config has.
func (b *indexBench) targets() (list []harness.Target) {
	first := b.m.Modes[b.o.Modes[0]]
	list = append(list,
		harness.AtLeast("time of COPY of the final rows / time of indexing", b.m.Yardsticks.FinalMedian/first.Seconds,
			shareOfFinalRows, ""),
		harness.AtLeast("time of COPY of the raw events / time of indexing", b.m.Yardsticks.RawMedian/first.Seconds,
			shareOfRawEvents, ""))
	if clean, ok := b.m.Modes[clean]; ok {
		list = append(list, harness.AtMost("RPC calls per 2,000 events, clean", clean.Runs[0].CallsPer2000,
			callsPer2000, "calls"))
	}
	highest := 0.0
	for _, name := range slices.Sorted(maps.Keys(b.m.Modes)) {
		highest = max(highest, b.m.Modes[name].PeakMB)
		list = append(list, harness.Holds("dump equals the history, "+name, b.m.Modes[name].Runs[0].Exact))
	}
	for _, p := range b.m.Curve {
		highest = max(highest, p.PeakMB)
	}
	// The busy history has a limit of its own below.
	list = append(list, harness.AtMost("highest RSS", highest, peakMB, "MB"))
	if b.m.Busy != nil {
		list = append(list, harness.AtMost("busy blocks: start to last row", b.m.Busy.Seconds, busySeconds, "s"),
			harness.AtMost("busy blocks: RSS", b.m.Busy.PeakMB, busyPeakMB, "MB"),
			harness.Holds("dump equals the history, busy", b.m.Busy.Runs[0].Exact))
	}
	return append(list, b.curveTargets()...)
}

// curveTargets judges whether an event costs the same in histories of all sizes; none for a single size.
func (b *indexBench) curveTargets() (list []harness.Target) {
	if len(b.m.Curve) < 2 {
		return nil
	}
	byCost := func(x, y CurvePoint) int { return cmp.Compare(x.MicrosPerEvent, y.MicrosPerEvent) }
	low, high := slices.MinFunc(b.m.Curve, byCost), slices.MaxFunc(b.m.Curve, byCost)
	list = append(list, harness.AtMost(fmt.Sprintf("cost of an event at %d events / at %d events", high.Events,
		low.Events),
		high.MicrosPerEvent/low.MicrosPerEvent, curveSpread, ""))
	for _, p := range b.m.Curve {
		list = append(list, harness.Holds(fmt.Sprintf("dump equals the history, %d events", p.Events), p.Exact))
	}
	return list
}
