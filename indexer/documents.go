package indexer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/errgroup"

	"repute/indexer/node"
	"repute/manifest"
	"repute/resolver"
	"repute/store"
)

// DocumentOptions tune the documents loop. Zero values are replaced by the
// defaults named.
type DocumentOptions struct {
	Sweep    time.Duration // between looks for due hosts, 500 ms
	Hosts    int           // worked on at once, 16
	Refetch  time.Duration // of what can change (https), 24 h
	RetryMin time.Duration // after a first failure that may pass, 1 min; doubles
	RetryMax time.Duration // 24 h
	Metrics  *Metrics      // nil: not exposed
	Log      *slog.Logger  // nil: discarded
}

func (o DocumentOptions) withDefaults() DocumentOptions {
	setDefault(&o.Sweep, 500*time.Millisecond)
	setDefault(&o.Hosts, 16)
	setDefault(&o.Refetch, 24*time.Hour)
	setDefault(&o.RetryMin, time.Minute)
	setDefault(&o.RetryMax, 24*time.Hour)
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

const (
	// documentsQueue holds the hosts of strangers, ownQueue what we wait for nobody
	// with: the first can be full of hosts that hang.
	documentsQueue = "documents"
	ownQueue       = "documents_own"
	// jobBudget is how long one job goes on starting fetches. What it starts can
	// end, within fetchLimit and saveLimit, before jobTimeout ends the job.
	// rescueAfter frees the host when the process died with it.
	jobBudget   = 15 * time.Second
	fetchLimit  = 22 * time.Second // more than the client's own
	saveLimit   = 30 * time.Second
	jobTimeout  = 75 * time.Second
	rescueAfter = 90 * time.Second
	// stopAfter is what running fetches get at shutdown.
	stopAfter = 3 * time.Second
	sweepMost = 500 // hosts queued by one sweep
)

// ownHosts are the queues that no stranger's server slows down: documents written
// on chain, and the gateways that are ours to choose.
var ownHosts = [...]string{"", "ipfs"}

// reasonInternal is the reason of a document that broke our own code.
const reasonInternal = "internal"

// fetcher is what Documents needs of a resolver.Client.
type fetcher interface {
	Fetch(ctx context.Context, uri string) (resolver.Document, error)
}

// Documents fetches the documents behind due URIs. Any number of processes may
// run it on one database: the state is in table uris, River only spreads the
// hosts over the workers, one job per host at a time.
type Documents struct {
	db    *store.DB
	fetch fetcher
	opts  DocumentOptions
}

// NewDocuments makes the loop.
func NewDocuments(db *store.DB, fetch *resolver.Client, o DocumentOptions) *Documents {
	return &Documents{db: db, fetch: fetch, opts: o.withDefaults()}
}

// ClassifyURI is a store.Options.Classify: the queue a URI belongs in. A host
// that is no text of sensible length is no queue.
func ClassifyURI(uri string) (kind, host string) {
	ref := resolver.Classify(uri)
	if len(ref.Host) > 255 || !utf8.ValidString(ref.Host) || strings.ContainsRune(ref.Host, 0) {
		return string(resolver.KindUnsupported), ""
	}
	return string(ref.Kind), ref.Host
}

// hostJob drains one host's due URIs; "" holds those that need no network.
type hostJob struct {
	Host string `json:"host"`
}

// Kind names the job in River's tables.
func (hostJob) Kind() string { return "documents" }

// InsertOpts allows one unfinished job per host. It is not retried: the next
// sweep finds what is still due.
func (j hostJob) InsertOpts() river.InsertOpts {
	queue := documentsQueue
	if slices.Contains(ownHosts[:], j.Host) {
		queue = ownQueue
	}
	return river.InsertOpts{Queue: queue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true,
		ByState: []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending,
			rivertype.JobStateRunning, rivertype.JobStateScheduled}}}
}

// Run fetches until ctx ends, which is no error; running fetches get a moment
// to finish. While the database is away it waits.
func (d *Documents) Run(ctx context.Context) error {
	retry := node.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for ctx.Err() == nil {
		client, err := d.start(ctx)
		if err == nil {
			d.sweepUntil(ctx, client)
			<-client.Stopped()
			return nil
		}
		d.opts.Log.Warn("documents: not started", "error", err)
		node.Pause(ctx, retry.Next())
	}
	return nil
}

func (d *Documents) start(ctx context.Context) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(d.work))
	client, err := river.NewClient(riverpgxv5.New(d.db.Pool()), &river.Config{
		Queues: map[string]river.QueueConfig{
			documentsQueue: {MaxWorkers: d.opts.Hosts}, ownQueue: {MaxWorkers: len(ownHosts)}},
		Workers:                     workers,
		FetchPollInterval:           time.Second,
		JobTimeout:                  jobTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		SoftStopTimeout:             stopAfter,
		CompletedJobRetentionPeriod: 10 * time.Minute,
		Logger:                      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("river: %w", err)
	}
	return client, nil
}

// sweepUntil queues due hosts until ctx ends.
func (d *Documents) sweepUntil(ctx context.Context, client *river.Client[pgx.Tx]) {
	retry := node.Backoff{Min: d.opts.Sweep, Max: 5 * time.Second}
	for ctx.Err() == nil {
		if err := d.sweep(ctx, client); err != nil && ctx.Err() == nil {
			d.opts.Log.Warn("documents: sweep failed", "error", err)
			node.Pause(ctx, retry.Next())
			continue
		}
		retry.Reset()
		node.Pause(ctx, d.opts.Sweep)
	}
}

func (d *Documents) sweep(ctx context.Context, client *river.Client[pgx.Tx]) error {
	hosts, err := d.db.DueHosts(ctx, sweepMost, ownHosts[:]...)
	if err != nil || len(hosts) == 0 {
		return err
	}
	jobs := make([]river.InsertManyParams, len(hosts))
	for i, host := range hosts {
		jobs[i].Args = hostJob{host}
	}
	_, err = client.InsertMany(ctx, jobs)
	return err
}

// work drains one host for as long as the job may last, then gives its turn away.
func (d *Documents) work(ctx context.Context, job *river.Job[hostJob]) error {
	host := job.Args.Host
	portion, parallel := portions(host)
	until := time.Now().Add(jobBudget)
	var group errgroup.Group
	for range parallel {
		group.Go(func() error { return d.drain(ctx, host, portion, until) })
	}
	err := group.Wait()
	if err == nil {
		err = d.db.FinishHost(ctx, host)
	}
	if err != nil {
		d.opts.Log.Warn("documents: host not finished", "host", host, "error", err)
	}
	return err
}

// drain works off portions of a host. A document that cannot be saved does not
// concern the others: its claim runs out.
func (d *Documents) drain(ctx context.Context, host string, portion int, until time.Time) error {
	for time.Now().Before(until) {
		due, err := d.db.DueURIs(ctx, host, portion)
		if err != nil || len(due) == 0 {
			return err
		}
		for _, u := range due {
			if ctx.Err() == nil && time.Now().Before(until) {
				err = d.resolve(ctx, u)
			} else {
				err = d.release(ctx, u)
			}
			if err != nil {
				d.opts.Log.Warn("documents: not saved", "host", host, "uri", u.ID, "error", err)
			}
		}
	}
	return ctx.Err()
}

// portions is how many URIs of a host are claimed at a time, and by how many at
// once: documents written on chain cost no network, gateways are ours to ask, and
// to anybody else's server we stay polite with two requests at a time, which follow
// each other without a pause. On the network one is claimed when it can be fetched.
func portions(host string) (portion, parallel int) {
	switch host {
	case "":
		return 50, 4
	case "ipfs":
		return 1, 8
	}
	return 1, 2
}

// resolve fetches, parses and saves one document, or why there is none. Strangers
// chose the bytes: one document that breaks us must not end the others.
func (d *Documents) resolve(ctx context.Context, u store.URI) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			d.opts.Log.Error("documents: panic", "uri", u.ID, "panic", broken, "stack", string(debug.Stack()))
			now := time.Now().UTC()
			err = d.save(ctx, store.FetchResult{URIID: u.ID, FetchedAt: now, Reason: reasonInternal,
				Detail:  "the document could not be read because of a fault of this program",
				NextDue: now.Add(jitter(d.opts.RetryMax))})
		}
	}()
	limited, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	doc, err := d.fetch.Fetch(limited, u.URI)
	if err != nil {
		return d.saveFailure(ctx, u, err)
	}
	reg, problems := manifest.Parse(doc.Bytes)
	r := store.FetchResult{URIID: u.ID, Body: doc.Bytes, MediaType: plain(doc.MediaType), Source: string(doc.Source),
		ETag: plain(doc.ETag), LastModified: plain(doc.LastModified), FetchedAt: doc.FetchedAt,
		ParserVersion: manifest.Version, Registration: &reg, Problems: problems}
	for _, b := range doc.Blocks {
		r.Blocks = append(r.Blocks, store.Block{Multihash: b.Multihash, Data: b.Data})
	}
	if doc.Source == resolver.SourceHTTPS {
		r.NextDue = doc.FetchedAt.Add(jitter(d.opts.Refetch))
	}
	return d.save(ctx, r)
}

func (d *Documents) saveFailure(ctx context.Context, u store.URI, err error) error {
	var failure *resolver.Error
	if !errors.As(err, &failure) || failure.Reason == resolver.ReasonCanceled {
		return d.release(ctx, u) // nothing was learnt about the document
	}
	now := time.Now().UTC()
	r := store.FetchResult{URIID: u.ID, FetchedAt: now, Reason: string(failure.Reason), Detail: plain(failure.Detail())}
	if failure.Retry {
		r.NextDue = now.Add(max(d.delay(u.Attempts), min(failure.RetryAfter, d.opts.RetryMax)))
	}
	return d.save(ctx, r)
}

// release gives a claim back, also at the end of ctx.
func (d *Documents) release(ctx context.Context, u store.URI) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	return d.db.ReleaseURI(ctx, u)
}

// save stores what was learnt, also at the end of ctx.
func (d *Documents) save(ctx context.Context, r store.FetchResult) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	d.opts.Metrics.documents.WithLabelValues(r.Source, r.Reason).Inc()
	if err := d.db.SaveDocument(ctx, r); err != nil {
		return fmt.Errorf("document %d: %w", r.URIID, err)
	}
	return nil
}

// delay is the pause after so many failures in a row.
func (d *Documents) delay(attempts int) time.Duration {
	wait := d.opts.RetryMin
	for range attempts - 1 {
		if wait >= d.opts.RetryMax/2 {
			return jitter(d.opts.RetryMax)
		}
		wait *= 2
	}
	return jitter(wait)
}

// jitter spreads d by a tenth either way, so that a host's URIs do not stay in
// step.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// plain makes foreign text fit for a text column.
func plain(s string) string {
	const most = 500
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

var _ river.JobArgsWithInsertOpts = hostJob{}
