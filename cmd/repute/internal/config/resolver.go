package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"repute/resolver"
)

// Resolver reads documents as this configuration says. log may be nil.
func (c *Config) Resolver(log *slog.Logger) (*resolver.Client, error) {
	contact := cmp.Or(c.Orchestrator.PublicURL, "no public URL configured")
	return resolver.New(resolver.Options{
		GuardOptions: resolver.GuardOptions{AllowHosts: c.AllowHosts},
		Gateways:     c.publicGateways(),
		Node:         strings.Join(c.ownGateways(), ""),
		Log:          log,
		UserAgent:    fmt.Sprintf("repute/%s (%s)", Version, contact),
	})
}

// Outside returns a client for addresses that others choose: it reaches public ones, and of others those that
// allow_hosts has. An exchange takes at most this long.
func (c *Config) Outside(most time.Duration) *http.Client {
	return resolver.NewGuard(resolver.GuardOptions{AllowHosts: c.AllowHosts, HeaderTimeout: most}).Client(most)
}
