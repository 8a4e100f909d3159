package manifests

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"time"

	"repute/indexer/node"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/store"
	"repute/store/docdb"
	"repute/store/manifestdb"
)

// maxHostBackoff bounds the backoff of a host for documents, as in package documents.
const maxHostBackoff = time.Hour

// outcome is the result of a check, and how the host behaved.
type outcome struct {
	manifestdb.Result
	silent   bool          // the host did not answer
	rest     time.Duration // the pause that it asked for
	shortest time.Duration // of its backoff
}

// save stores an outcome. A host that did not answer, or asked for a pause, rests for documents too.
func (o *outcome) save(ctx context.Context, db *store.DB, c manifestdb.Claim) error {
	host := c.Host
	rests := (o.silent || o.rest > 0) && !host.Until.IsZero()
	if rests {
		c.Host = docdb.HostClaim{} // BackOffHost ends it
	}
	err := manifestdb.Save(ctx, db, c, o.Result)
	if rests {
		err = errors.Join(err, docdb.BackOffHost(ctx, db, host, o.rest, o.shortest, maxHostBackoff))
	}
	return err
}

// outcome checks a domain; nil if nothing was learned about it. The bytes are untrusted: a manifest that causes a panic
// must not stop the others.
func (l *Loop) outcome(ctx context.Context, c manifestdb.Claim) (o *outcome) {
	defer func() {
		if broken := recover(); broken != nil {
			l.opts.Log.Error("manifests: panic", "domain", c.Domain, "panic", broken, "stack", string(debug.Stack()))
			o = &outcome{Result: manifestdb.Result{Reason: "internal", Wait: node.Jitter(l.opts.RetryMax),
				Detail: "the manifest could not be read because of a fault of this program"}}
		}
	}()
	if c.Denied != "" {
		return l.gone(manifestdb.StateDenied, docdb.ReasonDenied, c.Denied)
	}
	forbidden, until, err := l.robots(ctx, c)
	switch {
	case err != nil:
		return nil
	case until.IsZero():
		return &outcome{Result: manifestdb.Result{Reason: manifestdb.ReasonRobots, Wait: l.backoff(c.Failures),
			Detail: "robots.txt could not be read, so that nothing else is asked for"}}
	case slices.ContainsFunc(wellknown.ManifestPaths(), func(p string) bool { return slices.Contains(forbidden, p) }):
		o = l.gone(manifestdb.StateRefused, manifestdb.ReasonRobots, "robots.txt forbids it")
	default:
		o = l.manifest(ctx, c, forbidden)
	}
	if o != nil {
		o.Robots, o.RobotsUntil = forbidden, until
	}
	return o
}

// crawledPaths are the paths that a check may ask for.
func crawledPaths() []string {
	return append(wellknown.ManifestPaths(), "/.well-known/did.json", "/.well-known/agent-trust.json")
}

// robots returns the paths that robots.txt forbids, and until when that holds; zero where the host did not say. It
// reads the file once a day. An error says that the caller gave up.
func (l *Loop) robots(ctx context.Context, c manifestdb.Claim) (forbidden []string, until time.Time, err error) {
	now := time.Now()
	if now.Before(c.RobotsUntil) {
		return c.Robots, c.RobotsUntil, nil
	}
	rules, err := l.fetch.Robots(ctx, c.Domain, l.opts.Agent, now)
	if err != nil || rules.Failed {
		return nil, until, err
	}
	for _, p := range crawledPaths() {
		if !rules.Allows(p) {
			forbidden = append(forbidden, p)
		}
	}
	return forbidden, rules.Until, nil
}

// gone is the outcome of a domain of which nothing may be shown.
func (l *Loop) gone(state manifestdb.State, reason, detail string) *outcome {
	return &outcome{Result: manifestdb.Result{Gone: state, Reason: reason, Detail: detail,
		Wait: node.Jitter(l.opts.Absent)}}
}

// manifest asks for the manifest and judges it.
func (l *Loop) manifest(ctx context.Context, c manifestdb.Claim, forbidden []string) *outcome {
	known := wellknown.Known{}
	if c.Known.Body != nil {
		known = wellknown.Known{URL: c.Known.URL,
			Validators: resolver.Validators{ETag: c.Known.ETag, LastModified: c.Known.LastModified}}
	}
	var watch stopwatch
	found, err := l.fetch.Manifest(watch.watch(ctx), c.Domain, known)
	if err != nil {
		return l.failure(c, err)
	}
	e, failed := l.evidence(ctx, c, &found, forbidden)
	if failed != nil {
		return failed
	}
	o := l.success(c, found, e)
	o.Content.Watched, o.Content.Latency = promises(&e), watch.last()
	if o.Content.Watched && c.Probed {
		probe := l.measure(ctx, c.Domain, probeable(&e.manifest))
		o.Content.Latency, o.Content.ProbeFailed, o.Content.Unmeasured = probe.took, probe.failed, probe.none
	}
	return o
}

// failure is the outcome of a check that failed; nil where the caller gave up.
func (l *Loop) failure(c manifestdb.Claim, err error) *outcome {
	var failed *resolver.Error
	if !errors.As(err, &failed) || failed.Reason == resolver.ReasonCanceled {
		return nil
	}
	if failed.Reason == resolver.ReasonNotFound {
		return l.gone(manifestdb.StateMissing, string(failed.Reason), failed.Detail())
	}
	o := &outcome{shortest: l.opts.RetryMin, Result: manifestdb.Result{Reason: string(failed.Reason),
		Detail: failed.Detail(), Wait: l.backoff(c.Failures)}}
	o.rest, o.silent = failed.Rest(), failed.IsSilent() && !failed.AfterRedirect
	o.Down = o.silent || failed.Status >= http.StatusInternalServerError
	o.Wait = max(o.Wait, o.rest)
	return o
}

// backoff returns the pause after a number of failures in a row before this one.
func (l *Loop) backoff(failures int) time.Duration {
	return node.Doubled(l.opts.RetryMin, l.opts.RetryMax, failures)
}

// wait returns the time until a manifest is checked again: as long as its host says that it is fresh, within bounds.
func (l *Loop) wait(c manifestdb.Claim, usable bool, fresh time.Duration) time.Duration {
	if !usable || !c.Used {
		return node.Jitter(l.opts.Absent)
	}
	return node.Jitter(min(max(l.opts.Refetch, fresh), max(l.opts.Absent, l.opts.Refetch)))
}

// pathOf returns the path of a URL, "" for none.
func pathOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Path
}
