// Package config reads what an operator can set: defaults, a YAML file, the environment and
// flags, each over the one before it. Load checks everything that can be checked before
// anything is opened; methods of Config make from it what the parts of the program need.
//
// [Flags] are bound to a command in groups, of which each command takes those that mean something to it, and
// [Flags.Load] merges all sources into a [Config]. Only flags that were given override: an empty default is no value.
// What is wrong is repute.ErrInvalid and names the key as the file has it, the value unless it may be a secret, and
// what is allowed. The file is read strictly, so that a key that is misspelled is an error and not a default.
//
// A chain may be named without being described: by the name of a known network, or of a chain that the database or a
// snapshot knows. [ChainConfig.Open] says that such an entry needs others to complete it, [Config.Complete] does so,
// and [ChainConfig.Resolve] returns the chain or what its entry lacks. Callers therefore complete a configuration as
// soon as they have the database, before they use its chains.
//
// Keys are references (keyRef), never texts of keys, and are opened by the code that signs. Nothing here keeps a
// connection or starts a goroutine, except that the policy of the orchestrator can be watched
// (orchestratorConfig.File).
//
// The reference of the configuration is made from the comments of the fields, and a test bounds how many keys there
// are: a key must earn its place.
package config

import (
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"repute"
	"repute/internal/pg"
)

// Config is everything that can be set. Flags win over the environment, the
// environment over the file, the file over defaults. docs/reference/configuration.md is made
// from the comments below.
type Config struct {
	// Postgres URL. Empty: a private Postgres in data_dir. ?pool_max_conns=N bounds the
	// connections that read, 16 otherwise; 8 more write.
	Database string `yaml:"database"`
	// URL of a streaming replica of database, from which a process of the role api alone answers reads of the index.
	// Empty: database.
	DatabaseRead string `yaml:"database_read_url"`
	// Redis URL, so that limits count over several processes. Empty: limits and caches in process.
	Redis string `yaml:"redis"`
	// Directory of the private Postgres.
	DataDir string `yaml:"data_dir"`
	// Address of the API.
	Listen string `yaml:"listen"`
	// What this process does: indexer, documents, trust, api, orchestrator.
	Roles []string `yaml:"roles"`
	// Chain of token ids that callers give without a chain, and of agents' identities. 0: the
	// only chain there is.
	DefaultChain uint64 `yaml:"default_chain"`
	// Requests per second of one caller. Negative: no limit.
	Rate float64 `yaml:"rate"`
	// CIDR ranges of proxies whose X-Forwarded-For names the caller.
	Proxies []string `yaml:"trusted_proxies"`
	// Trustless gateways, asked in this order. One with http is your own ipfs node: it may be
	// private and is asked first.
	Gateways []string `yaml:"ipfs_gateways"`
	// Names under which callers may call this process, in addition to loopback names and the
	// host of orchestrator.public_url; and sites, scheme://host[:port], whose pages may call tools, change things and
	// read runs, in addition to orchestrator.public_url.
	AllowedHosts []string `yaml:"allowed_hosts"`
	// Private hosts, host:port, that documents may come from and agents may call; for
	// development.
	AllowHosts   []string           `yaml:"allow_hosts"`
	Documents    documentConfig     `yaml:"documents"`
	Signing      signingConfig      `yaml:"signing"`
	Trust        trustConfig        `yaml:"trust"`
	Orchestrator orchestratorConfig `yaml:"orchestrator"`
	LogFormat    string             `yaml:"-"` // text or json, by flag and environment alone
	LogLevel     string             `yaml:"-"` // debug, info, warn or error, by flag and environment alone
	Chains       []ChainConfig      `yaml:"chains"`
	// Lease is how long a frozen process keeps its chains from others, set by environment alone because all processes
	// of one database do best with the same.
	Lease       time.Duration  `yaml:"-"`
	ProxyRanges []netip.Prefix // Proxies, parsed by check
}

// trustConfig names the files that scores follow from, in addition to the roots.
type trustConfig struct {
	// File of the parameters of scores. Empty: those that repute comes with.
	Params string `yaml:"params"`
	// File that says what the values of tags mean. Empty: the table that repute comes with.
	Tags string `yaml:"tags"`
	// Facts about addresses that give raters a first weight: default for the file that repute comes with, none, or the
	// path of a file. Endpoints of chains are asked for them.
	Sources string `yaml:"sources"`
}

const (
	// Drain is how long running work may finish after SIGTERM. It is below the 30 s after
	// which Kubernetes and systemd kill a process.
	Drain = 10 * time.Second
	// keepFinals is how long a final score is kept that another one replaced: auditors ask
	// for half a year.
	keepFinals = 180 * 24 * time.Hour
	// signedLifetime is how long a signed score is valid: longer than callers cache it,
	// shorter than an epoch of most chains.
	signedLifetime = time.Hour
)

// documentConfig says which documents are read and kept.
type documentConfig struct {
	// Whether the files of feedback, responses and validations are read too.
	Feedback bool `yaml:"feedback"`
	// Bytes kept of documents that no agent shows any more; the oldest are dropped, their hashes
	// and parsed forms stay. 0: no limit.
	MaxBytes int64 `yaml:"max_bytes"`
	// Directory with the files of the Open Agent Trust Registry (manifest.json, revocations.json, root-keys.json,
	// proofs). Issuers that manifests name are checked against it. Empty: none is verified.
	Issuers string `yaml:"issuers"`
}

// knownRoles are all; defaultRoles those of a process that is told nothing.
var (
	defaultRoles = []string{"indexer", "documents", "trust", "api"}
	knownRoles   = append(slices.Clone(defaultRoles), "orchestrator")
)

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

// defaults returns the configuration of an operator who sets nothing.
func defaults() Config {
	return Config{
		DataDir:   dataDir(),
		Listen:    "127.0.0.1:8080",
		Roles:     defaultRoles,
		Rate:      50,
		Gateways:  []string{"https://trustless-gateway.link", "https://ipfs.io", "https://dweb.link"},
		Documents: documentConfig{Feedback: true, MaxBytes: 20 << 30},
		Trust:     trustConfig{Sources: sourcesDefault},
		LogFormat: "text",
		LogLevel:  "info",
		Lease:     10 * time.Second,
	}
}

// fromEnvironment replaces values by those of the environment, which win over the file and lose to flags. A variable
// that is empty is as one that is not set: it cannot empty a value of the file.
func fromEnvironment(c *Config) error {
	for name, dst := range map[string]*string{
		"DATABASE_URL": &c.Database, "DATABASE_READ_URL": &c.DatabaseRead, "REDIS_URL": &c.Redis,
		"REPUTE_DATA_DIR": &c.DataDir, "REPUTE_LISTEN": &c.Listen,
		"REPUTE_LOG_FORMAT": &c.LogFormat, "REPUTE_LOG_LEVEL": &c.LogLevel,
		"REPUTE_SIGNING_KEY": (*string)(&c.Signing.Key),
	} {
		if v := os.Getenv(name); v != "" {
			*dst = v
		}
	}
	if v := os.Getenv("REPUTE_ROLES"); v != "" {
		c.Roles = strings.Split(v, ",")
	}
	if v := os.Getenv("REPUTE_LEASE"); v != "" {
		lease, err := time.ParseDuration(v)
		if err != nil {
			return repute.Invalid("REPUTE_LEASE", "not a duration", "e.g. 10s")
		}
		c.Lease = lease
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

// Has reports whether this process has a role.
func (c *Config) Has(role string) bool { return slices.Contains(c.Roles, role) }

// Logger returns a log to w in the configured form and level. Warnings and errors that repeat are counted rather than
// written. Each call returns a log that counts by itself, so that a process should make one.
func (c *Config) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // checked by check
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(newCountRepeats(slog.NewJSONHandler(w, options)))
	}
	return slog.New(newCountRepeats(slog.NewTextHandler(w, options)))
}

// Postgres is the directory of the private server.
func (c *Config) Postgres() string { return filepath.Join(c.DataDir, "postgres") }

// HasDatabase reports whether there is a database that may hold something: a configured one, or the files of a private
// one. It asks nobody: a server at the URL may be away.
func (c *Config) HasDatabase() bool { return c.Database != "" || pg.Exists(c.Postgres()) }
