package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"repute"
	"repute/indexer/documents"
	"repute/internal/bench/harness"
)

// DocumentsOptions say what Documents measures.
type DocumentsOptions struct {
	Program   harness.Program
	Documents int       // of each run
	Hosts     int       // that serve them over http, of which one in twenty is dead
	Progress  io.Writer // lines for a person; nil: none
}

// What the documents loop must reach.
const (
	dataPerSecond = 1000 // documents of data: URIs, with the product on one processor
	// shareOfBound is the ideal time by the time taken: the loop may leave a tenth of what its own limits allow.
	shareOfBound = 0.90
	delayByDead  = 1.05 // times of runs with dead hosts by those without
	// memoryGrowth is of the resident memory from a fifth of the documents to all. It leaves room for the garbage
	// collector, whose heap differs between two looks.
	memoryGrowth = 1.25
	delayByCrowd = 1.5 // half of them hold a place until they time out
	crowd        = documents.DefaultHosts
	deadOneIn    = 20
	// documentsLimit ends one run that hangs.
	documentsLimit = 8 * time.Minute
)

// DocumentsMeasurements is what Documents found. Data reads DocumentsOptions.Documents. The runs over http read those
// of the hosts that answer, which are nineteen in twenty, so that their times compare with each other alone.
type DocumentsMeasurements struct {
	Data DocumentsRun `json:"data"`      // documents written in their URIs, the product on one processor
	Live DocumentsRun `json:"http_live"` // from the hosts that answer alone
	Web  DocumentsRun `json:"http"`      // the same with the dead hosts
	// Crowd is with as many dead hosts as there are places: not all hosts are worked on at once.
	Crowd   DocumentsRun `json:"http_crowd"`
	Latency Latencies    `json:"http_latency"` // of the hosts that answer
}

// DocumentsRun is one reading of documents, from the first fetch to the moment when
// the last one is visible in the database.
type DocumentsRun struct {
	Documents int     `json:"documents"`
	Dead      int     `json:"documents_of_dead_hosts"` // due at the same time, not waited for
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"documents_per_second"`
	// Ideal is what the product's own limits allow with the latencies served: the
	// greater of the sum of them by the requests allowed at once, and that of the
	// slowest host by the requests allowed to one.
	Ideal  float64 `json:"ideal_seconds,omitempty"`
	AtOnce int     `json:"requests_at_once,omitempty"` // at most, as the hosts saw it
	CPUs   int     `json:"gomaxprocs"`                 // of the product; 0: all of the machine
	harness.Usage
	// EarlyMB and EndMB are the resident memory; 0 where the system does not tell it.
	EarlyMB float64 `json:"rss_mb_at_20_percent"`
	EndMB   float64 `json:"rss_mb_at_100_percent"`
}

// growth is how much more memory was held at the end than early, as a factor; 0 where the system does not tell.
func (r DocumentsRun) growth() float64 { return r.EndMB / max(r.EarlyMB, 1) }

// Documents measures how fast documents are read and stored: those written in their
// URIs, and those of many slow hosts on this machine, without and with dead ones.
func Documents(ctx context.Context, o DocumentsOptions) (r harness.Report, err error) {
	if err := o.check(); err != nil {
		return r, err
	}
	r = harness.Report{Name: "documents", Config: map[string]any{"documents": o.Documents, "hosts": o.Hosts,
		"dead_hosts": o.Hosts / deadOneIn, "dead_hosts_of_crowd": crowd,
		"hosts_at_once": documents.DefaultHosts, "requests_per_host": documents.HostParallel, "seed": harness.Seed}}
	say := harness.Progress{To: o.Progress}
	return harness.OnServer(ctx, say, r, false, func(server *harness.Server) (any, []harness.Target, error) {
		b := &documentsBench{Progress: say, o: o, server: server}
		err := b.measure(ctx)
		return b.m, b.m.targets(), err
	})
}

// check refuses numbers by which a host would have no document, or none would be dead.
func (o DocumentsOptions) check() error {
	if o.Hosts < deadOneIn {
		return repute.Invalid("hosts", fmt.Sprintf("of %d hosts none can be dead", o.Hosts),
			fmt.Sprintf("%d or more", deadOneIn))
	}
	if o.Documents < o.Hosts {
		return repute.Invalid("documents", fmt.Sprintf("%d are not one for each of %d hosts", o.Documents, o.Hosts),
			"more documents, or fewer --hosts")
	}
	return nil
}

// documentsBench is one call of Documents.
type documentsBench struct {
	harness.Progress
	o      DocumentsOptions
	server *harness.Server
	m      DocumentsMeasurements
}

// measure makes the runs one after the other, each on a fresh database.
func (b *documentsBench) measure(ctx context.Context) (err error) {
	if b.m.Data, err = b.data(ctx); err != nil {
		return fmt.Errorf("data: URIs: %w", err)
	}
	if b.m.Live, err = b.web(ctx, "http, live hosts", 0); err != nil {
		return fmt.Errorf("http: %w", err)
	}
	if b.m.Web, err = b.web(ctx, "http, with dead hosts", b.o.Hosts/deadOneIn); err != nil {
		return fmt.Errorf("http with dead hosts: %w", err)
	}
	if b.m.Crowd, err = b.web(ctx, "http, with as many dead hosts as places", crowd); err != nil {
		return fmt.Errorf("http with many dead hosts: %w", err)
	}
	return nil
}

// data reads documents that need no network.
func (b *documentsBench) data(ctx context.Context) (DocumentsRun, error) {
	uris := make([]string, b.o.Documents)
	for i := range uris {
		uris[i] = dataURI(i)
	}
	x := &reading{documentsBench: b, uris: uris, live: len(uris), cpus: 1}
	return b.run(ctx, "data: URIs", x)
}

// web reads documents of hosts that answer, while those of dead ones are due. Every call opens hosts of its own: the
// product MUST know none of them from the run before.
func (b *documentsBench) web(ctx context.Context, name string, dead int) (r DocumentsRun, err error) {
	f, err := startFarm(ctx, b.o.Hosts-b.o.Hosts/deadOneIn, dead, b.o.Documents/b.o.Hosts)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	b.m.Latency = f.latencies()
	x := &reading{documentsBench: b, uris: f.uris(dead > 0), live: f.live * f.each, farm: f}
	return b.run(ctx, name, x)
}

// run makes one run and tells its figures.
func (b *documentsBench) run(ctx context.Context, name string, x *reading) (DocumentsRun, error) {
	r, err := x.run(ctx)
	if err != nil {
		return r, err
	}
	b.Say("%s: %d in %.2f s (ideal %.2f s, product %.2f s, Postgres %.2f s), %.0f/s, at most %d at once, %.0f MB at 20 %%, %.0f MB at the end, %.0f MB at most",
		name, r.Documents, r.Seconds, r.Ideal, r.CPU, r.PostgresCPU, r.PerSecond, r.AtOnce, r.EarlyMB, r.EndMB,
		r.PeakMB)
	return r, nil
}

// targets judges what was measured.
func (m DocumentsMeasurements) targets() []harness.Target {
	return []harness.Target{
		harness.AtLeast("data: URIs read and stored, product on one processor", m.Data.PerSecond, dataPerSecond, "/s"),
		harness.AtLeast("http with dead hosts: ideal time / time", m.Web.Ideal/m.Web.Seconds, shareOfBound, ""),
		harness.AtMost("http: time with dead hosts / time without", m.Web.Seconds/m.Live.Seconds, delayByDead, ""),
		harness.AtMost("http: time with as many dead hosts as places / time without", m.Crowd.Seconds/m.Live.Seconds,
			delayByCrowd,
			""),
		harness.AtMost("data: URIs: RSS at 100 % / at 20 %", m.Data.growth(), memoryGrowth, ""),
		harness.AtMost("http: RSS at 100 % / at 20 %", m.Web.growth(), memoryGrowth, ""),
	}
}
