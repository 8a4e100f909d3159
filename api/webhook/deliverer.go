package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"repute"
	"repute/api/feed"
	"repute/store"
	"repute/store/webhookdb"
)

const (
	// lookEvery is the interval in which webhooks are looked for that were added, changed, or left by another process.
	lookEvery = time.Second
	// leaseTTL bounds how long a webhook rests after a machine was lost. A process that ends frees its leases at once.
	leaseTTL = 30 * time.Second
	// positionEvery is the interval in which the place in the feed is stored while nothing is selected.
	positionEvery = 30 * time.Second
)

// Clock is the time by which deliveries are retried.
type Clock interface {
	Now() time.Time
	// Pause waits for d or for the end of ctx.
	Pause(ctx context.Context, d time.Duration)
}

// systemClock is the Clock of the machine.
type systemClock struct{}

// Now returns the time of the machine.
func (systemClock) Now() time.Time { return time.Now() }

// Pause waits as repute.Pause.
func (systemClock) Pause(ctx context.Context, d time.Duration) { repute.Pause(ctx, d) }

// Options configure a Deliverer. Feed and Client are required.
type Options struct {
	// Feed is the reader of the feed that the process shares.
	Feed *feed.Feed
	// Client limits the addresses that may be reached. Its redirects are not followed.
	Client *http.Client
	// Owner names the process in leases; a name of its own when empty.
	Owner string
	// UserAgent names the program to receivers.
	UserAgent string
	// Timeout bounds one message with its answer: 15 s.
	Timeout time.Duration
	// Clock is the machine's when nil.
	Clock Clock
	// Log is slog's default when nil.
	Log *slog.Logger
}

// Deliverer sends changes to webhooks. Make one with New.
type Deliverer struct {
	db   *store.DB
	o    Options
	http *http.Client

	mu      sync.Mutex
	workers map[string]*worker
	running sync.WaitGroup
}

// worker delivers one webhook.
type worker struct {
	version int64
	stop    context.CancelFunc
}

// New returns a Deliverer that does nothing until Run.
func New(db *store.DB, o Options) *Deliverer {
	if o.Timeout <= 0 {
		o.Timeout = timeout
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Owner == "" {
		host, _ := os.Hostname() // only for people who read the leases
		o.Owner = fmt.Sprintf("%s:%d:%s", host, os.Getpid(), rand.Text()[:8])
	}
	own := *o.Client
	own.Timeout = o.Timeout
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Deliverer{db: db, o: o, http: &own, workers: map[string]*worker{}}
}

// Run delivers the webhooks that no other process delivers, until ctx ends.
func (d *Deliverer) Run(ctx context.Context) {
	defer d.running.Wait()
	failed := false
	for ctx.Err() == nil {
		err := d.look(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			d.o.Log.WarnContext(ctx, "webhooks cannot be read", "error", err)
		}
		failed = err != nil
		repute.Pause(ctx, lookEvery)
	}
}

// look starts workers of webhooks that have none, and stops those of webhooks that were changed.
func (d *Deliverer) look(ctx context.Context) error {
	list, err := webhookdb.List(ctx, d.db)
	if err != nil {
		return err
	}
	current := make(map[string]int64, len(list))
	for _, w := range list {
		if w.Disabled == "" {
			current[w.ID] = w.Version
		}
	}
	d.mu.Lock()
	for id, k := range d.workers {
		if version, enabled := current[id]; !enabled || version != k.version {
			k.stop()
		}
		delete(current, id)
	}
	d.mu.Unlock()
	for id := range current {
		if err := d.start(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// start begins to deliver a webhook, unless another process does.
func (d *Deliverer) start(ctx context.Context, id string) error {
	lease, err := d.db.Acquire(ctx, webhookdb.Lease(id), d.o.Owner, leaseTTL)
	if errors.Is(err, repute.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	w, err := webhookdb.Read(ctx, d.db, id)
	if err != nil || w.Disabled != "" {
		d.release(ctx, lease)
		if errors.Is(err, repute.ErrNotFound) {
			return nil
		}
		return err
	}
	own, stop := context.WithCancel(ctx)
	d.mu.Lock()
	d.workers[id] = &worker{version: w.Version, stop: stop}
	d.mu.Unlock()
	d.running.Go(func() {
		defer func() {
			stop()
			d.release(ctx, lease)
			d.mu.Lock()
			delete(d.workers, id)
			d.mu.Unlock()
		}()
		d.work(own, stop, &delivery{Deliverer: d, lease: lease, w: w})
	})
	return nil
}

// release frees a lease, also when ctx has ended.
func (d *Deliverer) release(ctx context.Context, l store.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := d.db.Release(ctx, l); err != nil {
		d.o.Log.WarnContext(ctx, "the lease of a webhook could not be released", "lease", l.Name, "error", err)
	}
}

// work delivers a webhook until ctx ends, the webhook is disabled or changed, or the lease is lost.
func (d *Deliverer) work(ctx context.Context, stop context.CancelFunc, v *delivery) {
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer stop()
	renewing.Go(func() {
		_ = d.db.KeepRenewed(ctx, v.lease, leaseTTL) // without the lease the work ends, whatever the reason
		stop()
	})
	err := v.follow(ctx)
	switch {
	case ctx.Err() != nil, errors.Is(err, errDisabled), errors.Is(err, repute.ErrConflict),
		errors.Is(err, repute.ErrFenced):
	case errors.Is(err, repute.ErrGone):
		err = v.disable(ctx,
			fmt.Sprintf("changes that were not sent are no longer kept (%v): read the state of the index, then "+
				"replay the webhook from a cursor that is kept", err))
		fallthrough
	default:
		if err != nil && !errors.Is(err, errDisabled) {
			d.o.Log.WarnContext(ctx, "a webhook waits", "webhook", v.w.ID, "error", err)
		}
	}
}
