package oafagent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"repute"
	"repute/agent/llm"
	"repute/agent/llm/model"
	"repute/agent/llm/modelfile"
	"repute/manifest/oaf"
)

// Options are what the operator gives an agent.
type Options struct {
	Models *modelfile.Table
	Getenv func(string) string
	// Env names the environment variables that the agent's files may use as ${NAME}.
	Env []string
	// Programs allows programs that the agent brings: MCP servers over standard input and output, which no
	// limits bind, and scripts of skills, under limits of the kernel.
	Programs bool
	Client   *http.Client // for MCP servers over HTTP; it decides what may be reached
	Memory   Memory       // nil: memory lasts as long as a conversation
	Bounds   llm.Bounds
	Log      *slog.Logger
}

// Agent is an agent that can run. It is safe for concurrent use.
type Agent struct {
	def      *oaf.Agent
	settings Settings
	o        Options
	model    llm.Model
	entry    modelfile.Entry
	servers  []*server
	notes    []string
}

// Settings are the section "repute" of harnessConfig.
type Settings struct {
	AgentID    json.RawMessage `json:"agentId"` // token id, as a number or a text of digits
	Chain      uint64          `json:"chain"`
	Registry   string          `json:"registry"` // address of the identity registry; that of the chain
	MaxTokens  int64           `json:"maxTokens"`
	MaxCostUSD json.RawMessage `json:"maxCostUsd"` // dollars, as a number or a text
	MaxTurns   int             `json:"maxTurns"`
}

// SettingsOf reads the section of an agent. repute.ErrInvalid names the member that is wrong.
func SettingsOf(def *oaf.Agent) (s Settings, err error) {
	if _, err := def.HarnessConfig("repute", &s); err != nil {
		return s, repute.Invalid("harnessConfig.repute", fmt.Sprintf("%.200s", err.Error()),
			"agentId, chain, registry, maxTokens, maxCostUsd, maxTurns")
	}
	if s.MaxTokens < 0 || s.MaxTurns < 0 {
		return s, repute.Invalid("harnessConfig.repute", "has a negative bound", "1 or more")
	}
	_, err = s.Budget()
	return s, err
}

// Budget is what a run of the agent may use by its own file.
func (s *Settings) Budget() (b llm.Budget, err error) {
	b.Tokens = s.MaxTokens
	if text := strings.Trim(string(s.MaxCostUSD), `"`); text != "" && text != "null" {
		b.Cost, err = repute.ParseDollars("harnessConfig.repute.maxCostUsd", text)
	}
	return b, err
}

// Identity is the token id of the agent's onchain identity, in digits; empty for none.
func (s *Settings) Identity() string { return strings.Trim(string(s.AgentID), `"`) }

// New prepares an agent. Nothing is connected yet. repute.ErrInvalid, repute.ErrNotFound: what the agent needs
// is not allowed or not configured.
func New(ctx context.Context, def *oaf.Agent, o Options) (*Agent, error) {
	s, err := SettingsOf(def)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Agent{def: def, settings: s, o: o}
	if a.entry, err = o.Models.Find(def.Model.Provider, cmp.Or(def.Model.Alias, def.Model.Name)); err != nil {
		return nil, fmt.Errorf("agent %.80s: %w", def.ID(), err)
	}
	if a.model, err = model.New(ctx, a.entry, o.Getenv); err != nil {
		return nil, fmt.Errorf("model %.80s: %w", a.entry.Model, err)
	}
	for i := range def.Servers {
		srv, err := newServer(&def.Servers[i], &a.o)
		if err != nil {
			if a.required(&def.Servers[i]) {
				return nil, fmt.Errorf("MCP server %.80s: %w", def.Servers[i].Name, err)
			}
			a.note("MCP server %.80s is left out: %v", def.Servers[i].Name, err)
			continue
		}
		a.servers = append(a.servers, srv)
		a.notes = append(a.notes, srv.notes()...)
	}
	a.noteUnknown()
	return a, nil
}

// note records a part of the agent's files that has no effect here. An operator reads it in the log.
func (a *Agent) note(format string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

// required reports whether the agent declares a server as required.
func (a *Agent) required(s *oaf.Server) bool {
	return slices.ContainsFunc(a.def.MCPServers, func(r oaf.ServerRef) bool { return r.Required && a.def.Server(r) == s })
}

// noteUnknown notes what the agent declares and this runtime does not have.
func (a *Agent) noteUnknown() {
	for _, t := range a.def.Tools {
		a.note("tool %.80q is of another harness: it is not offered to the model", t)
	}
	for _, r := range a.def.Skills {
		if !r.IsLocal() {
			a.note("skill %.80q comes from a registry: it is not loaded", r.Name)
		}
	}
	for _, p := range a.def.Packs {
		a.note("pack %.80q is not loaded", p.Pack)
	}
	for _, w := range a.def.Weblets {
		a.note("weblet %.80q is not started", w.Weblet)
	}
}

// Notes say what of the agent's files has no effect here, or is left to its servers to enforce.
func (a *Agent) Notes() []string { return a.notes }

// Definition is what the agent was made from.
func (a *Agent) Definition() *oaf.Agent { return a.def }

// Settings are those of the agent's own file.
func (a *Agent) Settings() Settings { return a.settings }

// Price is what tokens of the agent's model cost.
func (a *Agent) Price(u llm.Usage) repute.Micros { return a.entry.Cost(u.Input, u.Output) }

// Close ends the agent's programs.
func (a *Agent) Close() {
	for _, s := range a.servers {
		s.close()
	}
}

// Session is one conversation with an agent.
type Session struct {
	// ID names what the agent remembers: conversations with the same id share a memory.
	ID string
	// Scope begins the ids of the sessions that the agent may search; empty: all of them.
	Scope string
	// Ledger makes the calls.
	Ledger llm.Ledger
	// Confirm asks a person about an action, where the agent's file requires it. Nil: nobody can be asked, and
	// such actions are refused. name identifies the action, with its input, within the session.
	Confirm func(ctx context.Context, name, text string) error
	// Delegates are tools by which the agent calls others.
	Delegates []llm.Tool
	// Text receives parts of the model's text as they arrive; nil: nobody does.
	Text func(turn int, text string)
}

// Run has a conversation.
func (a *Agent) Run(ctx context.Context, s Session, user string) (llm.Answer, error) {
	r := &run{Agent: a, s: s}
	tools, err := r.tools(ctx)
	if err != nil {
		return llm.Answer{}, err
	}
	memory, err := r.remembered(ctx)
	if err != nil {
		return llm.Answer{}, err
	}
	bounds := a.o.Bounds
	if a.settings.MaxTurns > 0 && (bounds.Turns == 0 || a.settings.MaxTurns < bounds.Turns) {
		bounds.Turns = a.settings.MaxTurns
	}
	l := &llm.Loop{Model: a.model, ModelName: a.entry.Model, System: a.system(memory),
		Temperature: a.def.Config.Temperature,
		MaxTokens:   int64(a.def.Config.MaxTokens), Tools: tools, Bounds: bounds, Ledger: s.Ledger, Text: s.Text}
	return l.Run(ctx, user)
}

// run is one conversation.
type run struct {
	*Agent
	s     Session
	acted int // actions that were confirmed
}

// system is the system prompt: the agent's own text, the skills by name and description, and the memory.
func (a *Agent) system(memory []Block) string {
	var b strings.Builder
	b.WriteString(a.def.Body)
	if len(a.def.LocalSkills) > 0 {
		b.WriteString("\n\n# Skills\n\nRead a skill with the tool skill before you use it.\n")
		for _, s := range a.def.LocalSkills {
			fmt.Fprintf(&b, "\n- %s: %s", s.Name, strings.Join(strings.Fields(s.Description), " "))
		}
	}
	if len(memory) > 0 {
		b.WriteString("\n\n# Memory\n")
		for _, m := range memory {
			fmt.Fprintf(&b, "\n## %s\n%s\n", m.Label, m.Text)
		}
	}
	return b.String()
}

// tools are all tools of the conversation, without those that the agent's file denies.
func (r *run) tools(ctx context.Context) ([]llm.Tool, error) {
	list := append(r.skillTools(), r.memoryTools()...)
	served, err := r.serverTools(ctx)
	if err != nil {
		return nil, err
	}
	list = append(list, served...)
	for _, d := range r.s.Delegates {
		list = append(list, r.confirm(d))
	}
	names := map[string]bool{}
	out := list[:0]
	for _, t := range list {
		if r.def.Denies(t.Name) || names[t.Name] {
			continue
		}
		names[t.Name] = true
		out = append(out, t)
	}
	return out, nil
}

// denies reports whether the agent's file denies a tool of a server. The server's and the tool's own names are tested,
// because the name that the model sees has other characters and can be shortened.
func (a *Agent) denies(s *server, tool string) bool {
	names := []string{s.def.Name, s.name, tool, s.def.Name + separator + tool, s.toolName(tool)}
	if s.def.Vendor != "" {
		vendor := "@" + strings.TrimPrefix(s.def.Vendor, "@")
		names = append(names, vendor+"/"+s.def.Name, vendor[1:]+"/"+s.def.Name)
	}
	return slices.ContainsFunc(names, a.def.Denies)
}

// maxShown bounds an input that a person confirms, in bytes, because all of it MUST fit in the reason of a decision.
const maxShown = 2000

// confirm makes a tool ask a person before each call, where the agent's file requires it. The name of the action has a
// digest of the input, so that an approval is never found for another input.
func (r *run) confirm(t llm.Tool) llm.Tool {
	if !r.def.Config.RequireConfirmation {
		return t
	}
	t.Before = func(ctx context.Context, input json.RawMessage) error {
		if r.s.Confirm == nil {
			return fmt.Errorf("the agent's file requires a confirmation, and nobody can be asked here: %w", repute.ErrInvalid)
		}
		if len(input) > maxShown {
			return repute.Invalid("input", fmt.Sprintf("has %d bytes, and a person who confirms the call is shown at most %d",
				len(input), maxShown), "a shorter input, or several calls")
		}
		r.acted++
		sum := sha256.Sum256(input)
		return r.s.Confirm(ctx, fmt.Sprintf("%d-%s-%x", r.acted, t.Name, sum[:8]),
			fmt.Sprintf("call %s with %s", t.Name, input))
	}
	return t
}

// callTime bounds one call of a tool where its server does not say.
const callTime = 30 * time.Second

// schema is a JSON Schema of an object with these texts.
func schema(names ...string) json.RawMessage {
	properties := map[string]any{}
	for _, n := range names {
		properties[n] = map[string]any{"type": "string"}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": names,
		"additionalProperties": false})
	if err != nil {
		return json.RawMessage(`{"type":"object"}`) // not reached: texts are JSON
	}
	return raw
}
