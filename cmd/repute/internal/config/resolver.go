package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

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
