package documents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"repute"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/errgroup"

	"repute/indexer/node"
	"repute/store/docdb"
)

const (
	// agentsQueue holds hosts at which documents of agents are due, filesQueue hosts at which only
	// other files are due, ownQueue the hosts in ownHosts. Hosts that do not answer can fill the first
	// two, and filling filesQueue costs an attacker little, so that it MUST NOT delay the others.
	agentsQueue = "documents"
	filesQueue  = "documents_files"
	ownQueue    = "documents_own"
	// jobBudget is how long one job starts fetches while other hosts may wait, freeBudget while
	// no other host waits. The last fetch ends before jobTimeout: it takes at most fetchLimit, and
	// saveLimit twice, for the document saved before and its own. Afterwards the job waits at most
	// returnLimit for each of the last document, its claims and its host. After rescueAfter the
	// job of a process that died is started again.
	jobBudget   = 15 * time.Second
	freeBudget  = 60 * time.Second
	fetchLimit  = 22 * time.Second // more than the client's own
	saveLimit   = 15 * time.Second // of all tries
	jobTimeout  = 118 * time.Second
	rescueAfter = 135 * time.Second
	returnLimit = 5 * time.Second
	// stopAfter is what running fetches get at shutdown.
	stopAfter = 3 * time.Second
	// sweepMost is how many hosts of each rank one sweep queues beyond the free workers. The queue is
	// first in, first out: the host of a new agent waits behind no more hosts of the other ranks.
	sweepMost = 100
)

// ownHosts are the hosts that need no server of an agent: "" for documents that the URI itself contains,
// and the gateways that the operator chose.
var ownHosts = [...]string{"", "ipfs", docdb.RetryHost}

// isOwn reports whether a host is one of ownHosts.
func isOwn(host string) bool { return slices.Contains(ownHosts[:], host) }

// hostJob drains one host's due URIs; "" holds those that need no network.
type hostJob struct {
	Host string `json:"host"`
	// Process is Loop.id for the own hosts, "" for others: several processes may work on an
	// own one, and none waits until a job is rescued of one that died.
	Process string `json:"process,omitempty"`
}

// Kind names the job in River's tables.
func (hostJob) Kind() string { return "documents" }

// InsertOpts allows one unfinished job per host. It is not retried: the next
// sweep finds what is still due.
func (j hostJob) InsertOpts() river.InsertOpts {
	queue := agentsQueue
	if isOwn(j.Host) {
		queue = ownQueue
	}
	return river.InsertOpts{Queue: queue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true,
		ByState: []rivertype.JobState{rivertype.JobStateAvailable, rivertype.JobStatePending,
			rivertype.JobStateRunning, rivertype.JobStateScheduled}}}
}

var _ river.JobArgsWithInsertOpts = hostJob{}

// Run fetches until ctx ends, which is no error; running fetches get a moment
// to finish. While the database is away it waits.
func (l *Loop) Run(ctx context.Context) error {
	retry := node.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for ctx.Err() == nil {
		client, err := l.start(ctx)
		if err == nil {
			var group errgroup.Group
			group.Go(func() error { l.maintain(ctx); return nil })
			l.sweepUntil(ctx, client)
			<-client.Stopped()
			return group.Wait()
		}
		l.opts.Log.Warn("documents: not started", "error", err)
		repute.Pause(ctx, retry.Next())
	}
	return nil
}

// start returns a running River client. Hosts that have planned documents and are not scheduled
// are scheduled first.
func (l *Loop) start(ctx context.Context) (*river.Client[pgx.Tx], error) {
	if err := docdb.RestoreHosts(ctx, l.db); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(l.work))
	client, err := river.NewClient(riverpgxv5.New(l.db.Pool()), &river.Config{
		Queues:                      l.queues(),
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

// slots are the places of a queue in this process.
type slots struct {
	most  int
	taken atomic.Int32
}

// free returns how many more hosts could be worked on now.
func (s *slots) free() int { return max(0, s.most-int(s.taken.Load())) }

// newSlots divides the workers: hosts of other files get a quarter of the places, besides those of
// hosts of agents, which they therefore never hold up.
func newSlots(hosts int) map[string]*slots {
	return map[string]*slots{agentsQueue: {most: hosts}, filesQueue: {most: (hosts + 3) / 4},
		ownQueue: {most: len(ownHosts)}}
}

// queues returns River's configuration, with as many workers as each queue has slots.
func (l *Loop) queues() map[string]river.QueueConfig {
	out := map[string]river.QueueConfig{}
	for name, s := range l.slots {
		out[name] = river.QueueConfig{MaxWorkers: s.most}
	}
	return out
}

// sweepUntil queues due hosts until ctx ends.
func (l *Loop) sweepUntil(ctx context.Context, client *river.Client[pgx.Tx]) {
	retry := node.Backoff{Min: l.opts.Sweep, Max: 5 * time.Second}
	for ctx.Err() == nil {
		if err := l.sweep(ctx, client); err != nil && ctx.Err() == nil {
			l.opts.Log.Warn("documents: sweep failed", "error", err)
			repute.Pause(ctx, retry.Next())
			continue
		}
		retry.Reset()
		repute.Pause(ctx, l.opts.Sweep)
	}
}

// sweep inserts a job for each host that is due. Jobs are unique by host, so a host that waits or
// is worked on gets no second one.
func (l *Loop) sweep(ctx context.Context, client *river.Client[pgx.Tx]) error {
	hosts, err := docdb.DueHosts(ctx, l.db, sweepMost+l.slots[agentsQueue].free(), ownHosts[:]...)
	if err != nil {
		return err
	}
	files, err := docdb.DueFileHosts(ctx, l.db, sweepMost+l.slots[filesQueue].free(), ownHosts[:]...)
	if err != nil {
		return err
	}
	var jobs []river.InsertManyParams
	for _, host := range hosts {
		jobs = append(jobs, river.InsertManyParams{Args: l.jobOf(host)})
	}
	for _, host := range files {
		o := l.jobOf(host).InsertOpts()
		o.Queue = filesQueue
		jobs = append(jobs, river.InsertManyParams{Args: l.jobOf(host), InsertOpts: &o})
	}
	if len(jobs) == 0 {
		return nil
	}
	_, err = client.InsertMany(ctx, jobs)
	return err
}

// jobOf returns the job of a host. A job of one of ownHosts names the process, so that each
// process can have one.
func (l *Loop) jobOf(host string) hostJob {
	if isOwn(host) {
		return hostJob{Host: host, Process: l.id}
	}
	return hostJob{Host: host}
}

// work fetches the due URIs of one host until the budget of the job ends, which is longer while no other
// host waits. Then it releases the host.
func (l *Loop) work(ctx context.Context, job *river.Job[hostJob]) error {
	place := l.slots[job.Queue]
	place.taken.Add(1)
	defer place.taken.Add(-1)
	t := &hostClaim{loop: l, place: place, host: job.Args.Host, begun: time.Now()}
	begun, err := t.claimHost(ctx)
	if begun {
		err = t.run(ctx)
	}
	if err != nil {
		err = errors.Join(err, l.releaseHost(ctx, t.host))
		l.opts.Log.Warn("documents: host not finished", "host", t.host, "error", err)
	}
	return err
}

// releaseHost ends the claim to a host, also after ctx has ended.
func (l *Loop) releaseHost(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancel()
	return docdb.ReleaseHost(ctx, l.db, host)
}

// hostClaim is the claim of one job to one host, and what the job has seen of it.
type hostClaim struct {
	loop   *Loop
	place  *slots
	host   string
	begun  time.Time
	short  atomic.Bool  // a worker found no due URI
	silent atomic.Int32 // fetches in a row that the host did not answer
	rest   atomic.Int64 // pause in ns that the host asked for
}

// maxSilent is the number of consecutive fetches without an answer after which the job leaves the host:
// further fetches would time out as well, and occupy a worker.
const maxSilent = 2

// portions returns how many URIs of a host are claimed at a time, and how many workers fetch them.
// Documents that the URI contains need no network, and gateways are the operator's own. Any other server
// gets HostParallel requests at a time. The first URI on the network is claimed alone, so that a host
// that does not answer delays no others.
func portions(host string) (portion, parallel int) {
	switch host {
	case "":
		return 50, 2
	case "ipfs", docdb.RetryHost:
		return 4, 8
	}
	return 8, HostParallel
}

// claimHost reports whether this job owns the host: another job may have worked on it while this one was
// queued. Several jobs may work on one of ownHosts.
func (t *hostClaim) claimHost(ctx context.Context) (bool, error) {
	if isOwn(t.host) {
		return true, nil
	}
	return docdb.ClaimHost(ctx, t.loop.db, t.host)
}

// run fetches the due documents of the claimed host and ends the claim: with a backoff when the
// host did not answer, else with its next due time.
func (t *hostClaim) run(ctx context.Context) error {
	portion, parallel := portions(t.host)
	var group errgroup.Group
	for range parallel {
		group.Go(func() error { return t.drain(ctx, portion) })
	}
	err := group.Wait()
	switch {
	case err != nil:
	case t.backsOff():
		err = docdb.BackOffHost(ctx, t.loop.db, t.host, time.Duration(t.rest.Load()),
			t.loop.opts.RetryMin, min(t.loop.opts.RetryMax, time.Hour))
	default:
		err = docdb.FinishHost(ctx, t.loop.db, t.host)
	}
	return err
}

// backsOff reports whether the job leaves the host until its backoff ends.
func (t *hostClaim) backsOff() bool {
	return !isOwn(t.host) && (t.silent.Load() >= maxSilent || t.rest.Load() > 0)
}

// drain fetches due URIs in portions. The next document is fetched while one document is saved. A document
// that cannot be saved does not stop the others: its claim expires.
func (t *hostClaim) drain(ctx context.Context, portion int) error {
	var last unsaved
	defer func() { t.await(ctx, last) }()
	most := portion
	if t.host != "" {
		most = 1
	}
	for ; t.mayFetch(); most = portion {
		due, err := docdb.DueURIs(ctx, t.loop.db, t.host, most)
		if err != nil || len(due) == 0 {
			t.short.Store(true)
			return err
		}
		if t.host == "" {
			t.loop.resolveMany(ctx, due)
			continue
		}
		for i, u := range due {
			if ctx.Err() != nil || !t.mayFetch() {
				t.warn(u.ID, t.loop.release(ctx, due[i:]...))
				break
			}
			told, err := t.resolve(ctx, u)
			t.warn(u.ID, err)
			t.await(ctx, last)
			last = unsaved{u.ID, told}
		}
	}
	return ctx.Err()
}

// mayFetch reports whether another fetch may begin. A job of which a worker found no due URI gets no longer
// budget, because the next job has all its workers again.
func (t *hostClaim) mayFetch() bool {
	budget := jobBudget
	if t.place.free() > 0 && !t.short.Load() && !isOwn(t.host) {
		budget = freeBudget
	}
	return time.Since(t.begun) < budget && !t.backsOff()
}

// unsaved is a document that is being saved. told receives the error of saving, which may be nil.
type unsaved struct {
	uri  int64
	told <-chan error
}

// await waits for the error of saving, after the end of ctx at most for returnLimit.
func (t *hostClaim) await(ctx context.Context, u unsaved) {
	if u.told == nil {
		return
	}
	select {
	case err := <-u.told:
		t.warn(u.uri, err)
		return
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancel()
	select {
	case err := <-u.told:
		t.warn(u.uri, err)
	case <-limited.Done():
		t.warn(u.uri, ctx.Err())
	}
}

// warn logs an outcome that could not be stored. The document stays due and is fetched again.
func (t *hostClaim) warn(uri int64, err error) {
	if err != nil {
		t.loop.opts.Log.Warn("documents: not saved", "host", t.host, "uri", uri, "error", err)
	}
}
