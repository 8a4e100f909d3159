package documents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// strangersQueue holds the hosts of agents, filesQueue those where only files are
	// due, ownQueue what we wait for nobody with: the first two can be full of hosts
	// that hang, the second at little cost for whoever wants it.
	strangersQueue = "documents"
	filesQueue     = "documents_files"
	ownQueue       = "documents_own"
	// jobBudget is how long one job goes on starting fetches while other hosts may
	// wait, freeBudget while there is room for them. What it starts can end before
	// jobTimeout ends the job: within fetchLimit, and saveLimit for what is stored already
	// and once more for its own. Then it waits no more than returnLimit for each of what is
	// stored, its claims and its host. rescueAfter frees the host when the process died
	// with it.
	jobBudget   = 15 * time.Second
	freeBudget  = 60 * time.Second
	fetchLimit  = 22 * time.Second // more than the client's own
	saveLimit   = 15 * time.Second // of all tries
	jobTimeout  = 118 * time.Second
	rescueAfter = 135 * time.Second
	returnLimit = 5 * time.Second
	// stopAfter is what running fetches get at shutdown.
	stopAfter = 3 * time.Second
	// sweepMost is how many hosts one sweep queues of each rank beyond those there is
	// room for. What is queued goes in the order it came: a new agent's host waits behind
	// no more of the other ranks.
	sweepMost = 100
)

// ownHosts are the queues that no stranger's server slows down: documents written
// on chain, and the gateways that are ours to choose.
var ownHosts = [...]string{"", "ipfs", docdb.RetryHost}

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
	queue := strangersQueue
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
			group.Go(func() error { l.keepUp(ctx); return nil })
			l.sweepUntil(ctx, client)
			<-client.Stopped()
			return group.Wait()
		}
		l.opts.Log.Warn("documents: not started", "error", err)
		node.Pause(ctx, retry.Next())
	}
	return nil
}

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

// free is how many hosts could begin a turn now.
func (s *slots) free() int { return max(0, s.most-int(s.taken.Load())) }

func newSlots(hosts int) map[string]*slots {
	return map[string]*slots{strangersQueue: {most: hosts}, filesQueue: {most: (hosts + 3) / 4}, ownQueue: {most: len(ownHosts)}}
}

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
			node.Pause(ctx, retry.Next())
			continue
		}
		retry.Reset()
		node.Pause(ctx, l.opts.Sweep)
	}
}

func (l *Loop) sweep(ctx context.Context, client *river.Client[pgx.Tx]) error {
	hosts, err := docdb.DueHosts(ctx, l.db, sweepMost+l.slots[strangersQueue].free(), ownHosts[:]...)
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

func (l *Loop) jobOf(host string) hostJob {
	if isOwn(host) {
		return hostJob{Host: host, Process: l.id}
	}
	return hostJob{Host: host}
}

// work drains one host for as long as the job may last, then gives its turn away. A
// turn that nobody waits for goes on for longer.
func (l *Loop) work(ctx context.Context, job *river.Job[hostJob]) error {
	place := l.slots[job.Queue]
	place.taken.Add(1)
	defer place.taken.Add(-1)
	t := &turn{loop: l, place: place, host: job.Args.Host, begun: time.Now()}
	begun, err := t.begin(ctx)
	if begun {
		err = t.run(ctx)
	}
	if err != nil {
		err = errors.Join(err, l.giveBack(ctx, t.host))
		l.opts.Log.Warn("documents: host not finished", "host", t.host, "error", err)
	}
	return err
}

// giveBack leaves a host to whoever comes next, also at the end of ctx.
func (l *Loop) giveBack(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancel()
	return docdb.ReleaseHost(ctx, l.db, host)
}

// turn is one job's work on one host.
type turn struct {
	loop   *Loop
	place  *slots
	host   string
	begun  time.Time
	short  atomic.Bool  // a worker found nothing to do
	silent atomic.Int32 // fetches in a row that the host did not answer
	rest   atomic.Int64 // how long the host asked us to stay away, in ns
}

// silentMost is after how many unanswered fetches a host's turn ends: what else is
// due there would only wait as long, and hold a worker.
const silentMost = 2

// portions is how many URIs of a host are claimed at a time, and by how many at
// once: documents written on chain cost no network, gateways are ours to ask, and
// to anybody else's server we stay polite with two requests at a time, which follow
// each other without a pause. On the network the first is claimed alone: a host that
// hangs holds no more than it was asked for.
func portions(host string) (portion, parallel int) {
	switch host {
	case "":
		return 50, 2
	case "ipfs", docdb.RetryHost:
		return 4, 8
	}
	return 8, HostParallel
}

// begin tells whether the turn is this one's: who was queued for long may come when another
// has worked on the host. The own hosts stay due while they are worked on.
func (t *turn) begin(ctx context.Context) (bool, error) {
	if isOwn(t.host) {
		return true, nil
	}
	return docdb.ClaimHost(ctx, t.loop.db, t.host)
}

func (t *turn) run(ctx context.Context) error {
	portion, parallel := portions(t.host)
	var group errgroup.Group
	for range parallel {
		group.Go(func() error { return t.drain(ctx, portion) })
	}
	err := group.Wait()
	switch {
	case err != nil:
	case t.given():
		err = docdb.BackOffHost(ctx, t.loop.db, t.host, time.Duration(t.rest.Load()),
			t.loop.opts.RetryMin, min(t.loop.opts.RetryMax, time.Hour))
	default:
		err = docdb.FinishHost(ctx, t.loop.db, t.host)
	}
	return err
}

// given tells whether the host is given up for this turn.
func (t *turn) given() bool {
	return !isOwn(t.host) && (t.silent.Load() >= silentMost || t.rest.Load() > 0)
}

// drain works off portions of a host. While one document is saved the next is fetched,
// and no more than that one. A document that cannot be saved does not concern the
// others: its claim runs out.
func (t *turn) drain(ctx context.Context, portion int) error {
	var last unsaved
	defer func() { t.await(ctx, last) }()
	claim := portion
	if t.host != "" {
		claim = 1
	}
	for ; t.goesOn(); claim = portion {
		due, err := docdb.DueURIs(ctx, t.loop.db, t.host, claim)
		if err != nil || len(due) == 0 {
			t.short.Store(true)
			return err
		}
		if t.host == "" {
			t.loop.resolveMany(ctx, due)
			continue
		}
		for i, u := range due {
			if ctx.Err() != nil || !t.goesOn() {
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

// goesOn tells whether fetches may still be started. The next turn has all its workers
// again: one where some found nothing to do is not made longer.
func (t *turn) goesOn() bool {
	budget := jobBudget
	if t.place.free() > 0 && !t.short.Load() && !isOwn(t.host) {
		budget = freeBudget
	}
	return time.Since(t.begun) < budget && !t.given()
}

// unsaved is a document that is being saved, or none when told is nil.
type unsaved struct {
	uri  int64
	told <-chan error
}

// await waits for the outcome, and not for long at the end of ctx.
func (t *turn) await(ctx context.Context, u unsaved) {
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

func (t *turn) warn(uri int64, err error) {
	if err != nil {
		t.loop.opts.Log.Warn("documents: not saved", "host", t.host, "uri", uri, "error", err)
	}
}
