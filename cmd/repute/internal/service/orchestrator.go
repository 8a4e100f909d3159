package service

import (
	"context"
	"net/http"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/internal/httpapi"
	"repute/internal/tracing"
	"repute/mcp"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/intentcall"
	"repute/orchestrator/remote"
	"repute/orchestrator/tasks"
	"repute/orchestrator/telemetry"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/trust/explain"
)

// agentTimeout bounds one request to a remote agent, or of an agent to a public address.
const agentTimeout = 60 * time.Second

// policyEvery is the interval of checking the policy's file for changes.
const policyEvery = 2 * time.Second

// Outside returns a client that reaches public addresses and the given hosts. Remote agents and
// requests of agents have separate lists, so that no agent reaches another one without its trust
// check.
func Outside(c *config.Config, hosts []string) *http.Client {
	return resolver.NewGuard(resolver.GuardOptions{AllowHosts: hosts, HeaderTimeout: agentTimeout}).Client(agentTimeout)
}

// orchestrate runs tasks until ctx ends. Programs of agents are ended after the engine, which still uses them while it
// drains.
func (s *Service) orchestrate(ctx context.Context, h sender) error {
	traces, err := tracing.Open(ctx, config.Version, telemetry.TraceIDs{}, s.log)
	if err != nil {
		return err
	}
	defer endTraces(traces)
	o, err := s.engineOptions(h)
	if err != nil {
		return err
	}
	formats, closeAll, err := formatted(ctx, &s.Config, h, s.db, s.log)
	defer closeAll()
	if err != nil {
		return err
	}
	o.Modules = append(o.Modules, formats...)
	o.Metrics = telemetry.NewMetrics(s.registry)
	if traces != nil {
		o.Trace = telemetry.NewTrace(traces)
	}
	e, err := orchestrator.New(s.db, o)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// engineOptions returns the configured options of the engine.
func (s *Service) engineOptions(h sender) (o orchestrator.Options, err error) {
	client := Outside(&s.Config, s.Config.Orchestrator.AgentHosts)
	modules, err := builtins(&s.Config, h)
	if err != nil {
		return o, err
	}
	documents, err := s.Config.Resolver(s.log)
	if err != nil {
		return o, err
	}
	return orchestrator.Options{Modules: modules, Intents: intentcall.Planner{From: wellknown.New(documents)},
		Tools: h.tools(), Policy: s.Config.Orchestrator.PolicyNow,
		HTTP: Outside(&s.Config, s.Config.AllowHosts), Lenient: s.Config.Orchestrator.Development,
		Remote: func(known repute.Module) (orchestrator.Module, error) {
			return remote.Stored(known, remote.Options{Client: client})
		},
		Payer: h.payer(s.db, Outside(&s.Config, s.Config.AllowHosts), s.log),
		Names: h.names, Tokens: h.tokens, Keys: h.keys(), Chain: h.chain(), Registries: h.registries,
		TrustChain:     h.trust,
		ExecutionChain: h.execution,
		Drain:          config.Drain, Log: s.log}, nil
}

// endTraces sends the remaining traces within a bound of time.
func endTraces(p *sdk.TracerProvider) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = p.Shutdown(ctx) // the failure is logged by the provider
}

// control adds the routes under /v1 to a server, and their tools to an MCP server. The agents of the Open Agent Format
// are read a second time here, for their manifests alone, so that a process with the role api shows them without the
// role orchestrator.
func (s *Service) control(ctx context.Context, h sender, server *httpapi.Server, tools *mcp.Server,
	hooks *hooks) error {
	client, err := tasks.NewClient(s.db)
	if err != nil {
		return err
	}
	o, err := s.Config.Trust.Reader()
	if err != nil {
		return err
	}
	o.Graphs = &s.graphs
	replay, err := explain.NewReader(s.db, o)
	if err != nil {
		return err
	}
	modules, err := builtins(&s.Config, h)
	if err != nil {
		return err
	}
	formats, closeAll, err := formatted(ctx, &s.Config, h, s.db, s.log) // for their manifests: nothing is started
	defer closeAll()
	if err != nil {
		return err
	}
	modules = append(modules, formats...)
	c := &s.Config.Orchestrator
	_, err = control.New(control.Options{Server: server, DB: s.db, Client: client, Policy: c.PolicyNow,
		Lenient: c.Development, Replay: replay, Gates: o.Params.Passable(), Modules: modules,
		Agents: Outside(&s.Config, c.AgentHosts), Operator: h.operator, Keys: s.Config.Signing.Published(),
		PrivateReads: s.Config.PrivateReads(), Coordinator: c.Coordinator, PublicURL: c.PublicURL,
		DefaultChain: s.Config.DefaultChain, Webhooks: hooks.routes(), Tools: tools, Done: ctx.Done()})
	return err
}
