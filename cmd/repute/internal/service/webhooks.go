package service

import (
	"cmp"
	"fmt"
	"net/url"

	"repute/api/feed"
	"repute/api/webhook"
	"repute/cmd/repute/internal/config"
	"repute/orchestrator/control/webhooks"
	"repute/resolver"
)

// hooks sends changes to webhooks, from the reader of the feed that the process shares. A nil value is for a process
// that delivers nothing: its routes send no test messages.
type hooks struct {
	*webhook.Deliverer
	feed    *feed.Feed
	allowed func(*url.URL) error
}

// webhooks returns what sends changes to webhooks: by https to public addresses, and to the hosts that documents may be
// read from too.
func (s *Service) webhooks() *hooks {
	changes := feed.New(s.db, s.log)
	guard := resolver.NewGuard(resolver.GuardOptions{AllowHosts: s.Config.AllowHosts})
	return &hooks{feed: changes, allowed: guard.Check, Deliverer: webhook.New(s.db, webhook.Options{Feed: changes,
		Client: guard.Client(0), Log: s.log,
		UserAgent: fmt.Sprintf("repute/%s (%s)", config.Version, cmp.Or(s.Config.Orchestrator.PublicURL, "webhook"))})}
}

// routes returns the options of the routes for webhooks.
func (h *hooks) routes() webhooks.Options {
	if h == nil {
		return webhooks.Options{}
	}
	return webhooks.Options{Sender: h.Deliverer, Allowed: h.allowed}
}
