package manifests

import (
	"context"
	"errors"
	"net/http"
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

// measure probes an endpoint of a domain, unless its robots.txt forbids that: it asks for the header alone. It returns
// the time to the first byte of an answer. An endpoint that does not answer in time took at least as long as that; one
// that fails otherwise has no time. Any status below 500 is an answer.
func (l *Loop) measure(ctx context.Context, domain, target string) (took time.Duration, failed bool) {
	if target == "" {
		return 0, false
	}
	rules, err := l.fetch.Robots(ctx, domain, l.opts.Agent, time.Now())
	if err != nil || rules.Failed || !rules.Allows(pathOf(target)) {
		return 0, false
	}
	var watch stopwatch
	began := time.Now()
	status, err := l.probe.Head(watch.watch(ctx), target)
	var e *resolver.Error
	switch {
	case errors.As(err, &e) && e.Reason == resolver.ReasonTimeout:
		took, failed = time.Since(began), true
	case errors.As(err, &e):
		took, failed = 0, e.IsSilent()
	default:
		took, failed = watch.last(), status >= http.StatusInternalServerError
	}
	l.opts.Log.Info("manifests: endpoint probed", "domain", domain, "url", target, "status", status, "took", took, "error", err)
	return took, failed
}
