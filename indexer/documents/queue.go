package documents

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"repute"
	"repute/indexer/node"
	"repute/store/docdb"
	"repute/store/docstats"
)

const (
	// jobBudget is how long one job starts fetches while other hosts may wait, freeBudget while
	// no other host waits. The last fetch ends before jobTimeout: it takes at most fetchLimit, and
	// saveLimit twice, for the document saved before and its own. Afterwards the job waits at most
	// returnLimit for each of the last document, its claims and its host. All of it ends before the
	// claim of the host expires (docdb.HostClaim).
	jobBudget   = 15 * time.Second
	freeBudget  = 60 * time.Second
	fetchLimit  = 22 * time.Second // more than the client's own
	saveLimit   = 15 * time.Second // of all tries
	jobTimeout  = 118 * time.Second
	returnLimit = 5 * time.Second
	// stopAfter is what running fetches get at shutdown.
	stopAfter = 3 * time.Second
	// noteEvery is how often the loop records that it works, for the status.
	noteEvery = 5 * time.Second
)

// ownHosts are the hosts that need no server of an agent: "" for documents that the URI itself contains,
// and the gateways that the operator chose.
var ownHosts = [...]string{"", "ipfs", docdb.RetryHost}

// isOwn reports whether a host is one of ownHosts.
func isOwn(host string) bool { return slices.Contains(ownHosts[:], host) }

// slots are the places for jobs of one class of hosts in this process. Hosts that do not answer can fill the places of
// their class, and filling those of files costs an attacker little, so that no class MUST delay another.
type slots struct {
	ranks []docdb.Rank // of the hosts; nil for ownHosts
	most  int
	taken atomic.Int32
	turns int // claims so far
}

// free returns how many more hosts could be worked on now.
func (s *slots) free() int { return max(0, s.most-int(s.taken.Load())) }

// nextRanks returns the ranks of the class, each first in turn, so that the last free place is not always of one rank.
func (s *slots) nextRanks() []docdb.Rank {
	n := s.turns % len(s.ranks)
	s.turns++
	return slices.Concat(s.ranks[n:], s.ranks[:n])
}

// newSlots divides the workers: hosts of other files get a quarter of the places, besides those of
// hosts of agents, which they therefore never hold up.
func newSlots(hosts int) (claimed [2]*slots, own *slots) {
	claimed[0] = &slots{ranks: []docdb.Rank{docdb.RankNew, docdb.RankAgent, docdb.RankProof}, most: hosts}
	claimed[1] = &slots{ranks: []docdb.Rank{docdb.RankFile}, most: (hosts + 3) / 4}
	return claimed, &slots{most: len(ownHosts)}
}

// Run fetches until ctx ends, which is no error; running fetches get a moment
// to finish. While the database is unavailable it waits.
func (l *Loop) Run(ctx context.Context) error {
	retry := node.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for ctx.Err() == nil {
		// Hosts that have planned documents and are not scheduled are scheduled first.
		err := docdb.RestoreHosts(ctx, l.db)
		if err == nil {
			var group errgroup.Group
			group.Go(func() error { l.maintain(ctx); return nil })
			l.dispatch(ctx)
			return group.Wait()
		}
		l.opts.Log.Warn("documents: not started", "error", err)
		repute.Pause(ctx, retry.Next())
	}
	return nil
}

// dispatch starts a job for each host that is due while there are places, until ctx ends and no job runs.
func (l *Loop) dispatch(ctx context.Context) {
	d := dispatcher{loop: l, own: map[string]bool{}, freed: make(chan struct{}, 1)}
	jobs, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer d.running.Wait()
	defer context.AfterFunc(ctx, func() { repute.Pause(jobs, stopAfter); cancel() })()
	retry := node.Backoff{Min: l.opts.Sweep, Max: 5 * time.Second}
	for ctx.Err() == nil {
		hungry, err := d.sweep(ctx, jobs)
		if err != nil && ctx.Err() == nil {
			l.opts.Log.Warn("documents: sweep failed", "error", err)
			repute.Pause(ctx, retry.Next())
			continue
		}
		retry.Reset()
		d.wait(ctx, hungry)
	}
}

// dispatcher gives hosts to jobs of this process.
type dispatcher struct {
	loop    *Loop
	running sync.WaitGroup
	freed   chan struct{} // holds a signal when a job has ended
	noted   time.Time

	mu  sync.Mutex
	own map[string]bool // the own hosts that a job of this process works on
}

// sweep starts jobs for hosts that are due. hungry is true when more hosts may be due than there were places.
func (d *dispatcher) sweep(ctx, jobs context.Context) (hungry bool, err error) {
	if time.Since(d.noted) >= noteEvery {
		if err := docstats.NoteWorker(ctx, d.loop.db); err != nil {
			return false, err
		}
		d.noted = time.Now()
	}
	due, err := docdb.DueOf(ctx, d.loop.db, ownHosts[:]...)
	if err != nil {
		return false, err
	}
	for _, host := range due {
		d.startOwn(jobs, host)
	}
	for _, place := range d.loop.claimed {
		free := place.free()
		if free == 0 {
			hungry = true
			continue
		}
		claims, err := docdb.ClaimHosts(ctx, d.loop.db, place.nextRanks(), free, ownHosts[:]...)
		if err != nil {
			return false, err
		}
		hungry = hungry || len(claims) == free
		for _, c := range claims {
			d.start(jobs, place, c, func() {})
		}
	}
	return hungry, nil
}

// startOwn starts a job for one of ownHosts unless one of this process runs. Each process may have one.
func (d *dispatcher) startOwn(jobs context.Context, host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own[host] {
		return
	}
	d.own[host] = true
	d.start(jobs, d.loop.own, docdb.HostClaim{Host: host}, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.own, host)
	})
}

// start starts a job, which calls ended at its end.
func (d *dispatcher) start(jobs context.Context, place *slots, c docdb.HostClaim, ended func()) {
	place.taken.Add(1)
	d.running.Go(func() {
		defer d.signal()
		defer ended()
		defer place.taken.Add(-1)
		d.loop.work(jobs, place, c)
	})
}

// signal records that a job has ended. It does not block.
func (d *dispatcher) signal() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// wait waits until the next sweep, or where hosts wait for a place until a job has ended.
func (d *dispatcher) wait(ctx context.Context, hungry bool) {
	t := time.NewTimer(d.loop.opts.Sweep)
	defer t.Stop()
	freed := d.freed
	if !hungry {
		freed = nil
	}
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-freed:
	}
}

// work fetches the due URIs of one claimed host until the budget of the job ends, which is longer while no other
// host waits. Then it ends the claim.
func (l *Loop) work(ctx context.Context, place *slots, c docdb.HostClaim) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	t := &hostClaim{loop: l, place: place, claim: c, begun: time.Now()}
	if err := t.run(ctx); err != nil {
		err = errors.Join(err, l.releaseHost(ctx, c))
		l.opts.Log.Warn("documents: host not finished", "host", c.Host, "error", err)
	}
}

// releaseHost ends the claim to a host, also after ctx has ended.
func (l *Loop) releaseHost(ctx context.Context, c docdb.HostClaim) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnLimit)
	defer cancel()
	return docdb.ReleaseHost(ctx, l.db, c)
}

// hostClaim is the claim of one job to one host, and what the job has seen of it.
type hostClaim struct {
	loop   *Loop
	place  *slots
	claim  docdb.HostClaim
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

// run fetches the due documents of the claimed host and ends the claim: with a backoff when the
// host did not answer, else with its next due time.
func (t *hostClaim) run(ctx context.Context) error {
	portion, parallel := portions(t.claim.Host)
	var group errgroup.Group
	for range parallel {
		group.Go(func() error { return t.drain(ctx, portion) })
	}
	err := group.Wait()
	switch {
	case err != nil:
	case t.backsOff():
		err = docdb.BackOffHost(ctx, t.loop.db, t.claim, time.Duration(t.rest.Load()),
			t.loop.opts.RetryMin, min(t.loop.opts.RetryMax, time.Hour))
	default:
		err = docdb.FinishHost(ctx, t.loop.db, t.claim)
	}
	return err
}

// backsOff reports whether the job leaves the host until its backoff ends.
func (t *hostClaim) backsOff() bool {
	return !isOwn(t.claim.Host) && (t.silent.Load() >= maxSilent || t.rest.Load() > 0)
}

// drain fetches due URIs in portions. The next document is fetched while one document is saved. A document
// that cannot be saved does not stop the others: its claim expires.
func (t *hostClaim) drain(ctx context.Context, portion int) error {
	var last unsaved
	defer func() { t.await(ctx, last) }()
	most := portion
	if t.claim.Host != "" {
		most = 1
	}
	for ; t.mayFetch(); most = portion {
		due, err := docdb.DueURIs(ctx, t.loop.db, t.claim.Host, most)
		if err != nil || len(due) == 0 {
			t.short.Store(true)
			return err
		}
		if t.claim.Host == "" {
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
	if t.place.free() > 0 && !t.short.Load() && !isOwn(t.claim.Host) {
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
		t.loop.opts.Log.Warn("documents: not saved", "host", t.claim.Host, "uri", uri, "error", err)
	}
}
