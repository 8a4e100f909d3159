package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	agentconfig "repute/agent/config"
	"repute/agent/handler"
	"repute/agent/llm/oafagent"
)

// work is a handler of a capability, which is its member. The operator's own servers may be private. The configuration
// was checked: exactly one kind is set. member names the handler in errors.
func (b *builder) work(c *agentconfig.Capability, h *agentconfig.Handler, member string) (agent.Handler, error) {
	field := "capabilities." + c.Name + "." + member
	switch {
	case h.HTTP != "":
		return &handler.HTTP{URL: h.HTTP, Log: b.log, Client: ownClient()}, nil
	case h.MCP != nil:
		return b.tool(h, field+".mcp")
	case h.Task != nil:
		return b.task(c, h.Task, field+".task")
	case h.OAF != nil:
		return b.oaf(h.OAF, field+".oaf")
	}
	return &handler.Exec{Path: h.Exec[0], Args: h.Exec[1:], Dir: h.Dir, Env: environment(h.Env), Log: b.log,
		Memory: uint64(h.Memory) << 20, CPU: h.CPU.Duration(), Wall: capability.MaxTimeout}, nil
}

// ownClient reaches the operator's own servers. It follows no redirects: a token MUST NOT reach
// another server.
func ownClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// environment is the environment of a program, in a stable order. A program does not inherit the environment of this
// process, which has the agent's key.
func environment(env map[string]string) []string {
	out := []string{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// bearer is the token that a variable of the environment has. The token is read once at the start. Its text is in no
// error.
func bearer(field, variable string) (string, error) {
	token := os.Getenv(variable)
	if token == "" {
		return "", repute.Invalid(field, fmt.Sprintf("the variable %.80s is not set", variable),
			"the name of a variable that holds the token")
	}
	return token, nil
}

// tool is a tool of an MCP server. Capabilities share a program with the same command, directory and environment, which
// ends with the process.
func (b *builder) tool(h *agentconfig.Handler, field string) (agent.Handler, error) {
	m := h.MCP
	if m.URL != "" {
		server := &handler.MCPEndpoint{URL: m.URL, Client: ownClient()}
		if m.TokenEnv != "" {
			token, err := bearer(field+".token_env", m.TokenEnv)
			if err != nil {
				return nil, err
			}
			server.Header = http.Header{"Authorization": {"Bearer " + token}}
		}
		return &handler.MCP{Server: server, Tool: m.Tool, Log: b.log}, nil
	}
	env := environment(h.Env)
	raw, err := json.Marshal([]any{m.Command, h.Dir, env})
	if err != nil {
		return nil, fmt.Errorf("%s.command: %w", field, err)
	}
	server := b.servers[string(raw)]
	if server == nil {
		server = &handler.MCPProgram{Path: m.Command[0], Args: m.Command[1:], Dir: h.Dir, Env: env}
		if b.servers == nil {
			b.servers = map[string]*handler.MCPProgram{}
		}
		b.servers[string(raw)] = server
		b.closers = append(b.closers, func() { _ = server.Close() }) // its exit status tells nothing at the end
	}
	return &handler.MCP{Server: server, Tool: m.Tool, Log: b.log}, nil
}

// oaf is an agent of the Open Agent Format. Notes about parts of the agent's file that have no effect are logged once.
func (b *builder) oaf(h *agentconfig.OAF, field string) (agent.Handler, error) {
	budget, err := h.Budget(field)
	if err != nil {
		return nil, err
	}
	def, err := oafagent.Read(h.Dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	o := oafagent.Options{Models: &b.config.Models, Getenv: os.Getenv, Env: h.Env, Programs: h.Programs,
		Client: b.main.Outside(oafagent.MaxCallTime), Rates: &b.rates, DB: b.db, Log: b.log}
	a, err := oafagent.New(context.Background(), def, o) // it outlives the start
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	b.closers = append(b.closers, a.Close)
	if err := b.sameIdentity(a); err != nil {
		return nil, fmt.Errorf("%s.dir: %w", field, err)
	}
	for _, note := range a.Notes() {
		b.log.Warn("a part of an agent's file has no effect", "agent", def.ID(), "note", note)
	}
	return &oafagent.Capability{Agent: a, Budget: budget}, nil
}

// sameIdentity refuses an agent whose own file names another onchain identity than that of the runtime, which its
// clients judge it by.
func (b *builder) sameIdentity(a *oafagent.Agent) error {
	s := a.Settings()
	text := s.Identity()
	if text == "" {
		return nil
	}
	own, err := repute.ParseAgentRef(text)
	if err != nil || own.TokenID != b.id.TokenID || own.ChainID != 0 && own.ChainID != b.id.ChainID ||
		own.Registry != nil && *own.Registry != b.id.Registry {
		return repute.Invalid("harnessConfig.repute.agentId",
			fmt.Sprintf("is %.120s, and the runtime is agent %s", text, b.id), "the identity of agent.id, or none")
	}
	return nil
}

// task is work that an orchestrator does.
func (b *builder) task(c *agentconfig.Capability, t *agentconfig.Task, field string) (agent.Handler, error) {
	token, err := bearer(field+".token_env", t.TokenEnv)
	if err != nil {
		return nil, err
	}
	goal := cmp.Or(t.Goal, c.Description, c.Name)
	return &handler.Task{URL: t.URL, Token: token, Coordinator: t.Coordinator, Goal: goal, Tags: t.Tags,
		Budget: t.Budget, Step: t.Step, Client: ownClient(), Log: b.log}, nil
}
