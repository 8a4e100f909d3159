package main

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"repute"
)

// config is everything that can be set. Flags win over the environment, the
// environment over the file, the file over defaults.
type config struct {
	Database     string             `yaml:"database"`        // empty: a private Postgres in DataDir
	MaxConns     int32              `yaml:"max_connections"` // of readers to Postgres; 0: 16
	Redis        string             `yaml:"redis"`           // empty: caches and limits in process
	DataDir      string             `yaml:"data_dir"`
	Listen       string             `yaml:"listen"`
	Roles        []string           `yaml:"roles"`
	DefaultChain uint64             `yaml:"default_chain"`
	Rate         float64            `yaml:"rate"`            // requests per second of one caller; negative: no limit
	Proxies      []string           `yaml:"trusted_proxies"` // CIDR; their X-Forwarded-For is believed
	Contact      string             `yaml:"contact"`         // goes into the User-Agent of fetches
	AdminToken   string             `yaml:"admin_token"`     // opens /admin; empty: there is none
	Gateways     []string           `yaml:"ipfs_gateways"`
	Node         string             `yaml:"ipfs_node"`     // gateway of the operator's own ipfs node, asked first
	AllowedHosts []string           `yaml:"allowed_hosts"` // names under which callers may call this process, beside loopback names and the host of orchestrator.public_url
	AllowHosts   []string           `yaml:"allow_hosts"`   // private hosts that documents may come from
	ExtraCA      string             `yaml:"extra_ca"`      // PEM file of authorities that documents' hosts may be signed by, too
	Documents    documentConfig     `yaml:"documents"`
	Signing      signingConfig      `yaml:"signing"`
	Trust        trustConfig        `yaml:"trust"`
	Orchestrator orchestratorConfig `yaml:"orchestrator"`
	MCP          mcpConfig          `yaml:"mcp"`
	LogFormat    string             `yaml:"log_format"`
	LogLevel     string             `yaml:"log_level"`
	Drain        time.Duration      `yaml:"drain"` // how long running work may finish after SIGTERM
	Lease        time.Duration      `yaml:"lease"` // how long a dead process keeps its chains from others
	Chains       []chainConfig      `yaml:"chains"`
	proxies      []netip.Prefix     // Proxies, parsed by check
	// roots replaces the system's certificates for documents: those and ExtraCA.
	roots *x509.CertPool
}

// trustConfig names the files that scores follow from, beside the roots, and says how long
// replaced ones are kept.
type trustConfig struct {
	Params string        `yaml:"params"` // empty: the parameters that repute comes with
	Tags   string        `yaml:"tags"`   // empty: the table of tags that repute comes with
	Finals time.Duration `yaml:"finals"` // how long a final score is kept that another one replaced; 0: for ever
}

// documentConfig says which documents are read and kept.
type documentConfig struct {
	Feedback bool  `yaml:"feedback"`  // also the files of feedback, responses and validations
	MaxBytes int64 `yaml:"max_bytes"` // kept of what no agent shows; 0: no limit
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

func defaults() config {
	return config{
		DataDir:   dataDir(),
		Listen:    "127.0.0.1:8080",
		Roles:     defaultRoles,
		Rate:      50,
		Gateways:  []string{"https://trustless-gateway.link", "https://ipfs.io", "https://dweb.link"},
		Documents: documentConfig{Feedback: true, MaxBytes: 20 << 30},
		Signing:   signingConfig{Lifetime: time.Hour},
		Trust:     trustConfig{Finals: 180 * 24 * time.Hour},
		LogFormat: "text",
		LogLevel:  "info",
		Drain:     10 * time.Second,
		Lease:     10 * time.Second,
	}
}

func fromEnvironment(c *config) error {
	for name, dst := range map[string]*string{
		"DATABASE_URL": &c.Database, "REDIS_URL": &c.Redis, "REPUTE_DATA_DIR": &c.DataDir, "REPUTE_LISTEN": &c.Listen,
		"REPUTE_LOG_FORMAT": &c.LogFormat, "REPUTE_LOG_LEVEL": &c.LogLevel, "REPUTE_CONTACT": &c.Contact,
		"REPUTE_ADMIN_TOKEN": &c.AdminToken, "REPUTE_SIGNING_KEY_FILE": &c.Signing.KeyFile,
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

func (c *config) has(role string) bool { return slices.Contains(c.Roles, role) }

func (c *config) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // checked by check
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(newCountRepeats(slog.NewJSONHandler(w, options)))
	}
	return slog.New(newCountRepeats(slog.NewTextHandler(w, options)))
}
