// Package manifests asks domains for their agent.json manifests: those that the files of registered agents name, and
// those that an operator imported.
//
// A Loop claims due domains together with their hosts, which the documents' loop asks too. For each it honors
// robots.txt, asks for the manifest and for what its verification needs, judges it, and saves the outcome. A domain
// that does not answer keeps its manifest, with its age, and is asked less and less often.
//
// The loop comes unasked, so it asks for little: one domain is checked by one process at a time, its robots.txt is read
// once a day, and nothing is asked of a host whose robots.txt cannot be read. A pause that a host asks for holds for
// its documents too. No check may have an effect: the loop only reads, and asks an endpoint of an agent for its header
// alone, where an operator allowed to probe the domain.
//
// A verdict needs documents of the same host, such as its DID document. Where these cannot be read for the moment, the
// verdict before holds for a day, while the manifest is the same.
//
// Outcomes are saved also at shutdown, within a time. A check that learned nothing, because the loop was ended, leaves
// the domain due.
package manifests

import (
	"context"
	"io/fs"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"repute"
	"repute/indexer/node"
	"repute/resolver/wellknown"
	"repute/store"
	"repute/store/manifestdb"
)

const (
	// jobTimeout bounds one check. It ends before the claim expires (docdb.HostClaimTime).
	jobTimeout = 100 * time.Second
	// saveTimeout is what the end of a check gets after jobTimeout or a shutdown.
	saveTimeout = 15 * time.Second
	planMost    = 5000
)

// Options tune a Loop. Zero values are replaced by the defaults named.
type Options struct {
	Agent    string        // the crawler's name for robots.txt, "repute"
	Sweep    time.Duration // between looks for due domains, 1 s
	PlanWait time.Duration // between looks for new domains, 1 min
	Domains  int           // domains at the same time, 32
	Refetch  time.Duration // between checks of a manifest, 1 h
	// Absent is the time between checks of a domain without a manifest of this format, or that no agent names any more,
	// 24 h.
	Absent   time.Duration
	RetryMin time.Duration // after a first failure, 5 min; doubles
	RetryMax time.Duration // 24 h
	// Issuers has the files of the registry of issuers; nil: no issuer is verified. They are read again when they are
	// replaced, within ten minutes.
	Issuers fs.FS
	Log     *slog.Logger // nil: discarded
}

// withDefaults replaces zero values by the named defaults.
func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.Sweep, time.Second}, {&o.PlanWait, time.Minute}, {&o.Refetch, time.Hour}, {&o.Absent, 24 * time.Hour},
		{&o.RetryMin, 5 * time.Minute}, {&o.RetryMax, 24 * time.Hour},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.Agent == "" {
		o.Agent = "repute"
	}
	if o.Domains <= 0 {
		o.Domains = 32
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Loop asks due domains for their manifests. Any number of processes may run it on one database: the claim of a domain
// gives it to one of them at a time.
type Loop struct {
	db    *store.DB
	fetch *wellknown.Fetcher
	opts  Options
	known issuers
}

// New returns a loop.
func New(db *store.DB, fetch *wellknown.Fetcher, o Options) *Loop {
	o = o.withDefaults()
	return &Loop{db: db, fetch: fetch, opts: o, known: issuers{files: o.Issuers, log: o.Log}}
}

// Run asks until ctx ends, which is no error; running checks then end early, and their domains are due again. While the
// database is unavailable it waits.
func (l *Loop) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { l.plan(ctx); return nil })
	group.Go(func() error { l.dispatch(ctx); return nil })
	return group.Wait()
}

// plan adds the domains that files of agents name, until ctx ends.
func (l *Loop) plan(ctx context.Context) {
	for ctx.Err() == nil {
		more, err := manifestdb.Plan(ctx, l.db, planMost)
		if err != nil && ctx.Err() == nil {
			l.opts.Log.Warn("manifests: not planned", "error", err)
		}
		if !more {
			repute.Pause(ctx, l.opts.PlanWait)
		}
	}
}

// dispatch starts a check for each due domain while there are places, until ctx ends and no check runs. It claims again
// as soon as a place is free, and pauses only when nothing more is due: a pause for each full set of places would keep
// places empty that quick hosts left.
func (l *Loop) dispatch(ctx context.Context) {
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // checks return no error
	places := make(chan struct{}, l.opts.Domains)
	retry := node.Backoff{Min: l.opts.Sweep, Max: 5 * time.Second}
	for {
		select {
		case <-ctx.Done():
			return
		case places <- struct{}{}: // waits for a free place
			<-places
		}
		free := cap(places) - len(places) // only this goroutine takes places
		claims, err := manifestdb.ClaimDue(ctx, l.db, free)
		if err != nil {
			if ctx.Err() == nil {
				l.opts.Log.Warn("manifests: sweep failed", "error", err)
			}
			repute.Pause(ctx, retry.Next())
			continue
		}
		retry.Reset()
		for _, c := range claims {
			places <- struct{}{}
			running.Go(func() error { l.work(ctx, c); <-places; return nil })
		}
		if len(claims) < free {
			repute.Pause(ctx, l.opts.Sweep)
		}
	}
}

// work checks one claimed domain and saves the outcome. Where nothing was learned the domain is due again.
func (l *Loop) work(ctx context.Context, c manifestdb.Claim) {
	limited, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	o := l.outcome(limited, c)
	saving, stop := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer stop()
	if o == nil {
		if err := manifestdb.Release(saving, l.db, c); err != nil {
			l.opts.Log.Warn("manifests: not released", "domain", c.Domain, "error", err)
		}
		return
	}
	if err := o.save(saving, l.db, c); err != nil {
		l.opts.Log.Warn("manifests: not saved", "domain", c.Domain, "error", err)
	}
}
