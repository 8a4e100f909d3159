package manifests

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"repute/manifest/agentjson"
	"repute/resolver"
)

// probeable returns the URL that a probe asks: that of the first intent that is read by GET and has no price, "" for
// none. An intent that changes something, or that could cost money, is never probed.
func probeable(m *agentjson.Manifest) string {
	for i, in := range m.Intents {
		if in.URL != "" && in.Method == http.MethodGet && m.Terms(i).Price == nil {
			return in.URL
		}
	}
	return ""
}

// measured is what a probe found. The zero value stands for an endpoint that may not be probed, or that there is not.
type measured struct {
	took   time.Duration // to the first byte of an answer; 0: nothing to keep
	failed bool
	// none reports that nothing was learned: the caller gave up, or the host did not say what its robots.txt forbids.
	none bool
}

// measure probes an endpoint of a domain, unless its robots.txt forbids that: it asks for the header alone. It returns
// the time to the first byte of an answer. An endpoint that does not answer in time took at least as long as that; one
// that fails otherwise has no time, because an error is made faster than an answer. Any status below 500 is an answer.
// The end of ctx is no fault of the host, so that nothing is measured then.
func (l *Loop) measure(ctx context.Context, domain, target string) (m measured) {
	if target == "" {
		return m
	}
	rules, err := l.fetch.Robots(ctx, domain, l.opts.Agent, time.Now())
	switch {
	case err != nil || rules.Failed:
		return measured{none: true}
	case !rules.Allows(askedOf(target)):
		return m
	}
	var watch stopwatch
	began := time.Now()
	status, err := l.fetch.Head(watch.watch(ctx), target)
	var e *resolver.Error
	switch {
	case err != nil && ctx.Err() != nil:
		m.none = true
	case errors.As(err, &e) && e.Reason == resolver.ReasonTimeout:
		m.took, m.failed = time.Since(began), true
	case errors.As(err, &e):
		m.failed = e.IsSilent()
	case status >= http.StatusInternalServerError:
		m.failed = true
	default:
		m.took = watch.last()
	}
	l.opts.Log.Info("manifests: endpoint probed", "domain", domain, "url", target, "status", status, "took", m.took,
		"error", err)
	return m
}

// askedOf returns the path and the query of a URL, which rules of robots.txt are compared with.
func askedOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.RequestURI()
}
