package main

import (
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"repute"
)

// config is everything that can be set. Flags win over the environment, the
// environment over the file, the file over defaults.
type config struct {
	Database     string         `yaml:"database"`        // empty: a private Postgres in DataDir
	MaxConns     int32          `yaml:"max_connections"` // of readers to Postgres; 0: 16
	Redis        string         `yaml:"redis"`           // empty: caches and limits in process
	DataDir      string         `yaml:"data_dir"`
	Listen       string         `yaml:"listen"`
	Roles        []string       `yaml:"roles"`
	DefaultChain uint64         `yaml:"default_chain"`
	Rate         float64        `yaml:"rate"`            // requests per second of one caller; negative: no limit
	Proxies      []string       `yaml:"trusted_proxies"` // CIDR; their X-Forwarded-For is believed
	Contact      string         `yaml:"contact"`         // goes into the User-Agent of fetches
	Gateways     []string       `yaml:"ipfs_gateways"`
	AllowHosts   []string       `yaml:"allow_hosts"` // private hosts that documents may come from
	LogFormat    string         `yaml:"log_format"`
	LogLevel     string         `yaml:"log_level"`
	Drain        time.Duration  `yaml:"drain"` // how long running work may finish after SIGTERM
	Lease        time.Duration  `yaml:"lease"` // how long a dead process keeps its chains from others
	Chains       []chainConfig  `yaml:"chains"`
	proxies      []netip.Prefix // Proxies, parsed by check
	// roots replaces the system's certificates for documents; the demo's own.
	roots *x509.CertPool
}

var knownRoles = []string{"indexer", "documents", "api"}

// dataDir is where the private Postgres lives by default. Root runs it as
// another user, who may not enter root's home.
func dataDir() string {
	dir, err := os.UserCacheDir()
	switch {
	case os.Geteuid() == 0:
		dir = "/var/lib"
	case err != nil:
		dir = os.TempDir()
	}
	return filepath.Join(dir, "repute")
}

func defaults() config {
	return config{
		DataDir:   dataDir(),
		Listen:    "127.0.0.1:8080",
		Roles:     knownRoles,
		Rate:      50,
		Gateways:  []string{"https://trustless-gateway.link", "https://ipfs.io", "https://dweb.link"},
		LogFormat: "text",
		LogLevel:  "info",
		Drain:     10 * time.Second,
		Lease:     10 * time.Second,
	}
}

// flags are the persistent flags; only those that were given override.
type flags struct {
	set    *pflag.FlagSet
	file   string
	chains []chainConfig // picked by --chain, each with the --rpc after it
	stray  bool          // an --rpc before any --chain
	c      config
}

func (f *flags) bind(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.file, "config", "", "YAML file (REPUTE_CONFIG)")
	set.StringVar(&f.c.Database, "database-url", "", "Postgres URL (DATABASE_URL); a private Postgres when empty")
	set.StringVar(&f.c.Redis, "redis-url", "", "Redis URL (REDIS_URL); in-process when empty")
	set.StringVar(&f.c.DataDir, "data-dir", "", "where the private Postgres lives (REPUTE_DATA_DIR)")
	set.StringVar(&f.c.Listen, "listen", "", "address of the API (REPUTE_LISTEN), default 127.0.0.1:8080")
	set.StringSliceVar(&f.c.Roles, "roles", nil, "what this process does: "+strings.Join(knownRoles, ",")+" (REPUTE_ROLES)")
	set.Uint64Var(&f.c.DefaultChain, "default-chain", 0, "chain of bare token ids (REPUTE_DEFAULT_CHAIN)")
	set.StringSliceVar(&f.c.AllowHosts, "allow-host", nil, "private host:port that documents may be fetched from, for development")
	set.StringVar(&f.c.LogFormat, "log-format", "", "text or json (REPUTE_LOG_FORMAT)")
	set.StringVar(&f.c.LogLevel, "log-level", "", "debug, info, warn or error (REPUTE_LOG_LEVEL)")
	set.Var(pick{f}, "chain", "a known chain by name or id; repeat for several (see repute chains)")
	set.Var(reach{f}, "rpc", "JSON-RPC URL of the --chain before it; repeat for several endpoints")
}

// load merges defaults, file, environment and flags.
func (f *flags) load() (config, error) {
	c := defaults()
	if f.stray {
		return c, repute.Invalid("rpc", "stands before every --chain", "give --rpc after the --chain it belongs to")
	}
	path := f.file
	if path == "" {
		path = os.Getenv("REPUTE_CONFIG")
	}
	if path != "" {
		if err := readFile(path, &c); err != nil {
			return c, err
		}
	}
	if err := fromEnvironment(&c); err != nil {
		return c, err
	}
	f.override(&c)
	return c, c.check()
}

func readFile(path string, c *config) error {
	file, err := os.Open(path)
	if err != nil {
		return repute.Invalid("config", err.Error(), "give a readable YAML file")
	}
	defer file.Close()
	dec := yaml.NewDecoder(io.LimitReader(file, 1<<20))
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil && err != io.EOF {
		return repute.Invalid("config", fmt.Sprintf("%s: %v", path, err), "see docs/operations.md for the keys")
	}
	return nil
}

func fromEnvironment(c *config) error {
	for name, dst := range map[string]*string{
		"DATABASE_URL": &c.Database, "REDIS_URL": &c.Redis, "REPUTE_DATA_DIR": &c.DataDir, "REPUTE_LISTEN": &c.Listen,
		"REPUTE_LOG_FORMAT": &c.LogFormat, "REPUTE_LOG_LEVEL": &c.LogLevel, "REPUTE_CONTACT": &c.Contact,
	} {
		if v := os.Getenv(name); v != "" {
			*dst = v
		}
	}
	if v := os.Getenv("REPUTE_ROLES"); v != "" {
		c.Roles = strings.Split(v, ",")
	}
	if v := os.Getenv("REPUTE_DEFAULT_CHAIN"); v != "" {
		id, err := repute.ParseChainID(v)
		if err != nil {
			return repute.Invalid("REPUTE_DEFAULT_CHAIN", "not a decimal chain id", "e.g. 8453")
		}
		c.DefaultChain = id
	}
	return nil
}

func (f *flags) override(c *config) {
	for name, dst := range map[string]*string{
		"database-url": &c.Database, "redis-url": &c.Redis, "data-dir": &c.DataDir, "listen": &c.Listen,
		"log-format": &c.LogFormat, "log-level": &c.LogLevel,
	} {
		if f.set.Changed(name) {
			*dst = f.set.Lookup(name).Value.String()
		}
	}
	if f.set.Changed("roles") {
		c.Roles = f.c.Roles
	}
	if f.set.Changed("allow-host") {
		c.AllowHosts = f.c.AllowHosts
	}
	if f.set.Changed("default-chain") {
		c.DefaultChain = f.c.DefaultChain
	}
	f.overrideChains(c)
}

// overrideChains takes the chains of the flags. A chain of the file keeps its
// other settings.
func (f *flags) overrideChains(c *config) {
	var chosen []chainConfig
	for _, flag := range f.chains {
		chain := flag
		for _, known := range c.Chains {
			if known.Name == flag.Name || fmt.Sprint(known.ID) == flag.Name {
				chain = known
			}
		}
		if len(flag.RPC) > 0 {
			chain.RPC = flag.RPC
		}
		chosen = append(chosen, chain)
	}
	if len(chosen) > 0 {
		c.Chains = chosen
	}
}

func (c *config) check() error {
	for _, role := range c.Roles {
		if !slices.Contains(knownRoles, role) {
			return repute.Invalid("roles", "unknown role "+role, "any of "+strings.Join(knownRoles, ","))
		}
	}
	if !slices.Contains([]string{"text", "json"}, c.LogFormat) {
		return repute.Invalid("log_format", "unknown format "+c.LogFormat, "text or json")
	}
	if c.Lease < time.Second || c.Lease > time.Minute {
		return repute.Invalid("lease", c.Lease.String()+" is out of range", "1s to 1m")
	}
	if c.MaxConns < 0 {
		return repute.Invalid("max_connections", "is negative", "e.g. 16")
	}
	if _, err := redis.ParseURL(c.Redis); c.Redis != "" && err != nil {
		// The parser's message may quote the password.
		return repute.Invalid("redis", "not a Redis URL", "e.g. redis://host:6379/0")
	}
	c.proxies = nil
	for _, s := range c.Proxies {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return repute.Invalid("trusted_proxies", "not a CIDR range: "+s, "e.g. 10.0.0.0/8")
		}
		c.proxies = append(c.proxies, p)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return repute.Invalid("log_level", "unknown level "+c.LogLevel, "debug, info, warn or error")
	}
	return nil
}

func (c *config) has(role string) bool { return slices.Contains(c.Roles, role) }

func (c *config) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // checked by check
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
