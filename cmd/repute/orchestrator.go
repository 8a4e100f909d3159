package main

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"repute"
	"repute/internal/tracing"
	"repute/mcp"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/remote"
	"repute/policy"
	"repute/resolver"
	"repute/trust/engine"
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
	// of fetches. Its host is one of allowed_hosts, its pages are of mcp.origins.
	PublicURL string `yaml:"public_url"`
	// Keys and endpoints for transactions, one entry for each chain. Agents spend from the
	// first treasury.
	Wallets []walletConfig `yaml:"wallets"`
	// Agents that repute comes with and that work here: name to chain:id, or to "" for none.
	Agents map[string]string `yaml:"agents"`
	// Private hosts, host:port, that registered agents may be at; agents cannot call them.
	AgentHosts []string `yaml:"agent_hosts"`
	// URLs below which the validator fetches what a validation request claims; requests with
	// any other URL are refused.
	Sources []string `yaml:"validation_sources"`
	file    *orchestrator.PolicyFile
}

// sharedHosts returns the host of public_url, which serves files of many agents.
func (c orchestratorConfig) sharedHosts() []string {
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return []string{strings.ToLower(u.Hostname())}
}

// checkOrchestrator reads the policy, and refuses what the parts would refuse that are made
// later.
func (c *config) checkOrchestrator() (err error) {
	if all, given := c.Orchestrator.Roles[anybody]; given && len(all) > 0 && !slices.Equal(all, []string{readRole}) {
		return repute.Invalid("orchestrator.roles."+anybody, "gives callers without a token more than read", "[read], or [] for nothing")
	}
	access := control.Options{Tokens: c.Orchestrator.Tokens, Roles: c.Orchestrator.tokenRoles(), PublicURL: c.Orchestrator.PublicURL}
	if err := access.Check(); err != nil {
		return err
	}
	scores, err := c.Trust.reader()
	if err != nil {
		return err
	}
	if c.Orchestrator.file, err = orchestrator.OpenPolicy(c.Orchestrator.Policy, scores.Params.Passable()); err != nil {
		return err
	}
	if err := c.checkWallets(); err != nil {
		return err
	}
	return c.checkAgents()
}

// Names in orchestrator.roles that have a meaning here.
const (
	anybody     = "*" // callers without a token
	readRole    = "read"
	operateRole = "operate"
)

// tokenRoles are the roles of tokens, without those of callers who have none.
func (c *orchestratorConfig) tokenRoles() map[string][]string {
	out := maps.Clone(c.Roles)
	delete(out, anybody)
	return out
}

// operatorTokens are the tokens that open the pages of the job queue.
func (c *config) operatorTokens() (out []string) {
	for name, token := range c.Orchestrator.Tokens {
		if roles, given := c.Orchestrator.Roles[name]; !given || slices.Contains(roles, operateRole) {
			out = append(out, token)
		}
	}
	return out
}

// privateReads reports whether readers of tasks need a token: as roles say, or else unless
// the API listens on loopback alone.
func (c *config) privateReads() bool {
	if all, given := c.Orchestrator.Roles[anybody]; given {
		return len(all) == 0
	}
	host, _, err := net.SplitHostPort(c.Listen)
	return err != nil || !loopback(host)
}

// policyNow is the policy that counts now.
func (c *orchestratorConfig) policyNow() *policy.Policy { return c.file.Current() }

// agentTimeout bounds one request to an agent elsewhere, or of one to the world.
const agentTimeout = 60 * time.Second

// policyEvery is how often the policy's file is looked at.
const policyEvery = 2 * time.Second

// outside is the way to public addresses, and to the hosts. Agents elsewhere and the requests
// of agents have lists of their own: no agent reaches another past its trust check.
func (c *config) outside(hosts []string) *http.Client {
	return resolver.NewGuard(resolver.GuardOptions{AllowHosts: hosts, HeaderTimeout: agentTimeout}).Client(agentTimeout)
}

// orchestrate runs tasks until ctx ends.
func (s *service) orchestrate(ctx context.Context, h hands) error {
	traces, err := tracing.Open(ctx, version, orchestrator.TraceIDs{}, s.log)
	if err != nil {
		return err
	}
	defer endTraces(traces)
	o, err := s.engineOptions(h)
	if err != nil {
		return err
	}
	o.Metrics, o.Trace = orchestrator.NewMetrics(s.registry), tracesOf(traces)
	e, err := orchestrator.New(s.db, o)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// engineOptions are those of the engine that follow from the configuration.
func (s *service) engineOptions(h hands) (o orchestrator.Options, err error) {
	client := s.config.outside(s.config.Orchestrator.AgentHosts)
	modules, err := s.config.builtins(h)
	if err != nil {
		return o, err
	}
	return orchestrator.Options{Modules: modules, Tools: h.tools(), Policy: s.config.Orchestrator.policyNow, HTTP: s.config.outside(s.config.AllowHosts), Lenient: s.config.Orchestrator.Development,
		Remote: func(known repute.Module) (orchestrator.Module, error) {
			return remote.Stored(known, remote.Options{Client: client})
		},
		Names: h.names, Tokens: h.tokens, Keys: h.keys(), Chain: h.chain(), Registries: h.registries, TrustChain: h.trust, ExecutionChain: h.execution,
		Drain: drain, Log: s.log}, nil
}

// tracesOf is nil where nobody collects traces.
func tracesOf(p *sdk.TracerProvider) *orchestrator.Trace {
	if p == nil {
		return nil
	}
	return orchestrator.NewTrace(p)
}

// endTraces sends what was not sent yet; a collector that does not answer holds up nobody.
func endTraces(p *sdk.TracerProvider) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = p.Shutdown(ctx) // the failure is logged by the provider
}

// control makes the routes under /v1 beside those of the API, and gives tools those of
// the orchestrator.
func (s *service) control(ctx context.Context, h hands, beside http.Handler, shared *redis.Client, tools *mcp.Server) (http.Handler, error) {
	desk, err := orchestrator.NewDesk(s.db)
	if err != nil {
		return nil, err
	}
	o, err := s.config.Trust.reader()
	if err != nil {
		return nil, err
	}
	replay, err := engine.NewReader(s.db, o)
	if err != nil {
		return nil, err
	}
	modules, err := s.config.builtins(h)
	if err != nil {
		return nil, err
	}
	c := &s.config.Orchestrator
	plane, err := control.New(control.Options{DB: s.db, Desk: desk, Policy: c.policyNow, Lenient: c.Development, Replay: replay, Gates: o.Params.Passable(), Modules: modules, Agents: s.config.outside(c.AgentHosts),
		Operator: h.operator, Keys: s.config.Signing.published(),
		Tokens: c.Tokens, Roles: c.tokenRoles(), PrivateReads: s.config.privateReads(), Coordinator: c.Coordinator, PublicURL: c.PublicURL, Origins: s.config.origins(), DefaultChain: s.config.DefaultChain, Tools: tools,
		Done: ctx.Done(), Redis: shared, Logger: s.log,
		Limits: control.Limits{Rate: s.config.Rate, Burst: int(4 * s.config.Rate), TrustedProxies: s.config.proxies}})
	if err != nil {
		return nil, err
	}
	return plane.Over(beside), nil
}
