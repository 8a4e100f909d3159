package config

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"repute"
	"repute/internal/httpapi"
	"repute/orchestrator/control"
	"repute/orchestrator/policyfile"
	"repute/policy"
)

// orchestratorConfig says how tasks are run.
type orchestratorConfig struct {
	// File of limits, thresholds and rules, read again when it changes. Empty: OpenFi's default
	// limits.
	Policy string `yaml:"policy"`
	// Whether agents without an onchain identity may work.
	Development bool `yaml:"development"`
	// Who may change things under /v1: name to token of 16 bytes or more.
	Tokens map[string]string `yaml:"tokens"`
	// What a token is for: name to a list of ask, approve, operate, own, read; a token without
	// an entry has all roles. operate also opens the job queue at /admin/jobs. The name "*"
	// stands for callers without a token: [read], or [] for nothing; without it they may read
	// where listen is a loopback address. Behind a proxy on the same machine set it to [].
	Roles map[string][]string `yaml:"roles"`
	// Slug of the agent whose agent.json and other files are served under /.well-known/.
	Coordinator string `yaml:"coordinator"`
	// URL at which callers reach this process, for links in those files and for the User-Agent
	// of fetches. Its host and its pages are allowed as those of allowed_hosts.
	PublicURL string `yaml:"public_url"`
	// Keys and endpoints for transactions, one entry for each chain. Agents spend from the
	// first treasury.
	Wallets []walletConfig `yaml:"wallets"`
	// Agents that repute comes with and that work here: name to chain:id, or to "" for none.
	Agents map[string]string `yaml:"agents"`
	// File of language models and of agents of the Open Agent Format that work here. Empty: none.
	OAF string `yaml:"oaf"`
	// Private hosts, host:port, that registered agents may be at; agents cannot call them.
	AgentHosts []string `yaml:"agent_hosts"`
	// URLs below which the validator fetches what a validation request claims; requests with
	// any other URL are refused.
	Sources []string `yaml:"validation_sources"`
	File    *policyfile.PolicyFile
}

// SharedHosts returns the host of public_url, which serves files of many agents.
func (c orchestratorConfig) SharedHosts() []string {
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return []string{strings.ToLower(u.Hostname())}
}

// checkOrchestrator reads the policy, and refuses what the parts would refuse that are made
// later.
func (c *Config) checkOrchestrator() (err error) {
	if _, err := c.OAF(); err != nil {
		return err
	}
	if all, given := c.Orchestrator.Roles[anybody]; given && len(all) > 0 && !slices.Equal(all, []string{readRole}) {
		return repute.Invalid("orchestrator.roles."+anybody, "gives callers without a token more than read",
			"[read], or [] for nothing")
	}
	if err := control.CheckPublicURL(c.Orchestrator.PublicURL); err != nil {
		return err
	}
	if _, err := httpapi.ReadTokens(c.Orchestrator.Tokens, c.Orchestrator.TokenRoles()); err != nil {
		return err
	}
	scores, err := c.Trust.Reader()
	if err != nil {
		return err
	}
	if c.Orchestrator.File, err = policyfile.OpenPolicy(c.Orchestrator.Policy, scores.Params.Passable()); err != nil {
		return err
	}
	if err := c.checkWallets(); err != nil {
		return err
	}
	return c.checkAgents()
}

// Names in orchestrator.roles that have a meaning here.
const (
	anybody  = "*" // callers without a token
	readRole = "read"
)

// TokenRoles are the roles of tokens, without those of callers who have none.
func (c *orchestratorConfig) TokenRoles() map[string][]string {
	out := maps.Clone(c.Roles)
	delete(out, anybody)
	return out
}

// PrivateReads reports whether readers of tasks need a token: as roles say, or else unless
// the API listens on loopback alone.
func (c *Config) PrivateReads() bool {
	if all, given := c.Orchestrator.Roles[anybody]; given {
		return len(all) == 0
	}
	host, _, err := net.SplitHostPort(c.Listen)
	return err != nil || !Loopback(host)
}

// PolicyNow is the policy that counts now.
func (c *orchestratorConfig) PolicyNow() *policy.Policy { return c.File.Current() }

// Loopback reports whether a host names this machine: localhost or a loopback address.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
