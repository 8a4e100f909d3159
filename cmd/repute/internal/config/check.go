package config

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"repute"
)

// check refuses settings that cannot be meant, before anything is opened, and parses what later is needed in another
// form. Errors are repute.ErrInvalid and name the key as the YAML file has it. Some parts also set fields that follow
// from others, such as ProxyRanges and Signer. The first error is returned.
func (c *Config) check() error {
	for _, one := range []func() error{c.checkRoles, c.checkLog, c.checkLimits, c.checkDatabase, c.checkRedis,
		c.checkProxies, c.checkHosts,
		c.checkSigning, c.checkTrust, c.checkOrchestrator, c.checkGuard} {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

// checkRoles refuses roles that do not exist: a misspelled one would never run, and nobody would be told.
func (c *Config) checkRoles() error {
	for _, role := range c.Roles {
		if !slices.Contains(knownRoles, role) {
			return repute.Invalid("roles", "unknown role "+role, "any of "+strings.Join(knownRoles, ","))
		}
	}
	return nil
}

// checkLog refuses forms and levels that do not exist, so that a misspelled level does not hide what it should show.
func (c *Config) checkLog() error {
	if !slices.Contains([]string{"text", "json"}, c.LogFormat) {
		return repute.Invalid("log-format", "unknown format "+c.LogFormat, "text or json")
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return repute.Invalid("log-level", "unknown level "+c.LogLevel, "debug, info, warn or error")
	}
	return nil
}

// checkLimits refuses limits that cannot work, and a directory of issuers that is not there. A lease of more than a
// minute would leave a chain without a follower for that long after a crash.
func (c *Config) checkLimits() error {
	switch {
	case c.Lease < time.Second || c.Lease > time.Minute:
		return repute.Invalid("REPUTE_LEASE", c.Lease.String()+" is out of range", "1s to 1m")
	case c.Documents.MaxBytes < 0:
		return repute.Invalid("documents.max_bytes", "is negative", "e.g. 20000000000, or 0 for no limit")
	}
	if dir := c.Documents.Issuers; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return repute.Invalid("documents.issuers", "is no directory: "+dir, "the directory of the registry's files")
		}
	}
	return nil
}

// checkDatabase refuses what is no address of a Postgres. The parser's message may
// quote the password.
func (c *Config) checkDatabase() error {
	for field, url := range map[string]string{"database": c.Database, "database_read_url": c.DatabaseRead} {
		if err := checkPostgres(field, url); err != nil {
			return err
		}
	}
	// A worker would compute from what the replica does not know yet, and store that it is done.
	if worker := slices.IndexFunc(c.Roles, func(role string) bool { return role != "api" }); c.DatabaseRead != "" &&
		worker >= 0 {
		return repute.Invalid("database_read_url",
			"the role "+c.Roles[worker]+" must read what it wrote, and a replica is behind",
			"a process of its own with roles: [api]")
	}
	return nil
}

// checkPostgres refuses what is no address of a Postgres; empty is none.
func checkPostgres(field, url string) error {
	const form = "e.g. postgres://user:password@host:5432/name"
	if url == "" {
		return nil
	}
	if scheme, _, found := strings.Cut(url, "://"); found && scheme != "postgres" && scheme != "postgresql" {
		return repute.Invalid(field, "scheme "+scheme+" is none of Postgres", form)
	}
	if _, err := pgx.ParseConfig(url); err != nil {
		return repute.Invalid(field, "not a Postgres URL", form)
	}
	return nil
}

// checkRedis refuses what is no URL of Redis. The parser's message may quote the
// password.
func (c *Config) checkRedis() error {
	if _, err := redis.ParseURL(c.Redis); c.Redis != "" && err != nil {
		return repute.Invalid("redis", "not a Redis URL", "e.g. redis://host:6379/0")
	}
	return nil
}

// checkProxies parses the ranges of proxies. They decide whose word about a caller's address is believed, and with it
// the rate limits.
func (c *Config) checkProxies() error {
	c.ProxyRanges = nil
	for _, s := range c.Proxies {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return repute.Invalid("trusted_proxies", "not a CIDR range: "+s, "e.g. 10.0.0.0/8")
		}
		c.ProxyRanges = append(c.ProxyRanges, p)
	}
	return nil
}

// checkHosts refuses what would never match a host or never answer.
func (c *Config) checkHosts() error {
	for field, list := range map[string][]string{"allow_hosts": c.AllowHosts,
		"orchestrator.agent_hosts": c.Orchestrator.AgentHosts} {
		for _, s := range list {
			host, _, err := net.SplitHostPort(s)
			if err != nil {
				host = s // without a port
			}
			if host == "" || strings.ContainsAny(s, "/@ ") {
				return repute.Invalid(field, fmt.Sprintf("%q is no host", s),
					"host:port without scheme or path, e.g. 127.0.0.1:9000")
			}
		}
	}
	for i, s := range c.Gateways {
		if !isGateway(s) { // not repeated: it may hold a key
			return repute.Invalid("ipfs_gateways", fmt.Sprintf("entry %d is no gateway's URL", i+1),
				"e.g. https://trustless-gateway.link, without user and query")
		}
	}
	if len(c.ownGateways()) > 1 {
		return repute.Invalid("ipfs_gateways", "two entries begin with http:",
			"one at most, your own node's; public gateways have https")
	}
	return nil
}

// ownGateways are the gateways with http. Only the operator's own node is reached that way.
func (c *Config) ownGateways() []string {
	return slices.DeleteFunc(slices.Clone(c.Gateways), func(s string) bool { return !strings.HasPrefix(s, "http:") })
}

// publicGateways are all others, in the order in which they are asked.
func (c *Config) publicGateways() []string {
	return slices.DeleteFunc(slices.Clone(c.Gateways), func(s string) bool { return strings.HasPrefix(s, "http:") })
}

// isGateway reports whether a text is the base URL of an ipfs gateway. A user or a query could hold a key.
func isGateway(s string) bool {
	u, err := url.Parse(s)
	return err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// CheckDefault refuses a default chain that is neither followed nor stored: every bare token id would be answered with
// "not found". It needs what is stored, and therefore comes after the database was opened.
func (c *Config) CheckDefault(stored []repute.ChainStatus) error {
	if c.DefaultChain == 0 || !c.Has("api") {
		return nil
	}
	var known []string
	for _, s := range stored {
		known = append(known, fmt.Sprint(s.Chain.ID))
	}
	chains, err := c.Followed()
	if err != nil {
		return err
	}
	for _, f := range chains {
		known = append(known, fmt.Sprint(f.ID))
	}
	if slices.Contains(known, fmt.Sprint(c.DefaultChain)) || len(known) == 0 {
		return nil // or of a chain that another process is about to add
	}
	slices.Sort(known)
	return repute.Invalid("default_chain", fmt.Sprintf("chain %d is neither followed nor stored", c.DefaultChain),
		"one of "+strings.Join(slices.Compact(known), ", "))
}
