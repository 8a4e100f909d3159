package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"repute"
)

// Flags are what command lines may set over the other sources: only those that were given override. Each command has
// the groups of them that mean something to it. c has the values of flags before they are merged: those that were not
// given are zero and MUST NOT be read.
type Flags struct {
	Set    *pflag.FlagSet // of the command that runs
	file   string
	Chains []ChainConfig // picked by --chain, each with the --rpc after it
	stray  bool          // an --rpc before any --chain
	c      Config
}

// logging adds the flags of logging and remembers set, the flags of the command that runs.
func (f *Flags) logging(set *pflag.FlagSet) {
	f.Set = set
	set.StringVar(&f.c.LogFormat, "log-format", "", "text or json (REPUTE_LOG_FORMAT)")
	set.StringVar(&f.c.LogLevel, "log-level", "", "debug, info, warn or error (REPUTE_LOG_LEVEL)")
}

// Database binds where the index is, and logging.
func (f *Flags) Database(set *pflag.FlagSet) {
	f.logging(set)
	set.StringVar(&f.file, "config", "", "YAML file (REPUTE_CONFIG)")
	set.StringVar(&f.c.Database, "database-url", "", "Postgres URL (DATABASE_URL); a private Postgres when empty")
	set.StringVar(&f.c.DataDir, "data-dir", "", "where the private Postgres lives (REPUTE_DATA_DIR)")
}

// Chain binds which chains are meant.
func (f *Flags) Chain(set *pflag.FlagSet) {
	set.Var(pick{f}, "chain",
		"a chain by name or id: a known network (repute chains), one of the YAML file or of the database")
}

// Endpoints binds which chains are meant and how they are reached.
func (f *Flags) Endpoints(set *pflag.FlagSet) {
	f.Chain(set)
	set.Var(reach{f}, "rpc", "JSON-RPC URL of the --chain before it; repeat for several endpoints")
}

// listening binds where the API is.
func (f *Flags) listening(set *pflag.FlagSet) {
	set.StringVar(&f.c.Listen, "listen", "", "address of the API (REPUTE_LISTEN), default 127.0.0.1:8080")
}

// Serving binds everything.
func (f *Flags) Serving(set *pflag.FlagSet) {
	f.Database(set)
	f.Endpoints(set)
	f.listening(set)
	set.StringVar(&f.c.Redis, "redis-url", "", "Redis URL (REDIS_URL); in-process when empty")
	set.StringSliceVar(&f.c.Roles, "roles", nil, "what this process does: "+strings.Join(knownRoles,
		",")+" (REPUTE_ROLES)")
	f.Reading(set)
}

// Reading binds how documents are found.
func (f *Flags) Reading(set *pflag.FlagSet) {
	set.Uint64Var(&f.c.DefaultChain, "default-chain", 0, "chain of bare token ids (REPUTE_DEFAULT_CHAIN)")
	set.StringSliceVar(&f.c.Gateways, "ipfs-gateway", nil,
		"URL of a trustless ipfs gateway, asked in this order; repeat it for several")
	set.StringSliceVar(&f.c.AllowHosts, "allow-host", nil,
		"private host:port that documents may be fetched from, for development")
}

// Load merges defaults, file, environment and flags.
func (f *Flags) Load() (Config, error) {
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

// override applies the flags that were given. A flag that was not given leaves the value of file and environment.
func (f *Flags) override(c *Config) {
	for name, dst := range map[string]*string{
		"database-url": &c.Database, "redis-url": &c.Redis, "data-dir": &c.DataDir, "listen": &c.Listen,
		"log-format": &c.LogFormat, "log-level": &c.LogLevel,
	} {
		if f.Set.Changed(name) {
			*dst = f.Set.Lookup(name).Value.String()
		}
	}
	if f.Set.Changed("roles") {
		c.Roles = f.c.Roles
	}
	if f.Set.Changed("allow-host") {
		c.AllowHosts = f.c.AllowHosts
	}
	if f.Set.Changed("ipfs-gateway") {
		c.Gateways = f.c.Gateways
	}
	if f.Set.Changed("default-chain") {
		c.DefaultChain = f.c.DefaultChain
	}
	f.overrideChains(c)
}

// overrideChains takes the chains of the flags. A chain of the file keeps its
// other settings.
func (f *Flags) overrideChains(c *Config) {
	var chosen []ChainConfig
	for _, flag := range f.Chains {
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
