package oafagent

import (
	"cmp"
	"context"
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
	"repute/store"
)

// MaxCallTime bounds one call of a server's tool, whatever its configuration says.
const MaxCallTime = 5 * time.Minute

// Options are what the operator gives an agent.
type Options struct {
	Models *modelfile.Table
	Getenv func(string) string
	// Env names the environment variables that the agent's files may use as ${NAME}.
	Env []string
	// Programs allows programs that the agent brings: MCP servers over standard input and output, which no
	// limits bind, and scripts of skills, under limits of the kernel.
	Programs bool
	// Client is for MCP servers over HTTP. The agent's files choose their addresses: it MUST refuse internal ones.
	Client *http.Client
	DB     *store.DB // has the memory of agents; nil: it lasts as long as a conversation
	Bounds llm.Bounds
	// Rates are shared by all agents of a process; nil: the agent has its own.
	Rates *Rates
	Log   *slog.Logger
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
	if o.Rates == nil {
		o.Rates = &Rates{}
	}
	a := &Agent{def: def, settings: s, o: o}
	if a.entry, err = o.Models.Find(def.Model.Provider, cmp.Or(def.Model.Alias, def.Model.Name)); err != nil {
		return nil, err
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
		srv.limit(o.Rates.of(def, srv.def))
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
	return slices.ContainsFunc(a.def.MCPServers,
		func(r oaf.ServerRef) bool { return r.Required && a.def.Server(r) == s })
}

// noteUnknown notes what the agent declares and this runtime does not have.
func (a *Agent) noteUnknown() {
	for _, t := range a.def.Tools {
		if !listed([]string{t}, scriptNames()) {
			a.note("tool %.80q is of another harness: it is not offered to the model", t)
		}
	}
	if a.o.Programs && a.hasScripts() && !(a.mayRunScripts() && a.permits(scripts())) {
		a.note("scripts of skills are not run: the agent's tools do not allow Bash")
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
	// Scope begins the ids of the sessions that the agent may search. Empty: the sessions of all callers.
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
	// Fallback is called in the remaining time if the conversation failed and Ledger.Ends reports false for the error.
	// It gets the answer so far and that error. nil: the error is returned.
	Fallback func(ctx context.Context, sofar llm.Answer, failed error) (llm.Answer, error)
}

// Run has a conversation. Bounds.Wall includes reading the tools of servers and the memory before the first turn, and
// the fallback.
func (a *Agent) Run(ctx context.Context, s Session, user string) (llm.Answer, error) {
	return llm.Within(ctx, a.o.Bounds.Wall, func(ctx context.Context) (llm.Answer, error) {
		answer, err := (&run{Agent: a, s: s}).converse(ctx, user)
		if err == nil || s.Fallback == nil || ctx.Err() != nil || s.Ledger.Ends(ctx, err) {
			return answer, err
		}
		return s.Fallback(ctx, answer, err)
	})
}

// converse has the conversation of a run.
func (r *run) converse(ctx context.Context, user string) (llm.Answer, error) {
	tools, err := r.tools(ctx)
	if err != nil {
		return llm.Answer{}, err
	}
	memory, err := r.remembered(ctx)
	if err != nil {
		return llm.Answer{}, err
	}
	bounds := r.o.Bounds
	if most := r.settings.MaxTurns; most > 0 && (bounds.Turns == 0 || most < bounds.Turns) {
		bounds.Turns = most
	}
	l := &llm.Loop{Model: r.model, ModelName: r.entry.Model, System: r.system(memory),
		Temperature: r.def.Config.Temperature, MaxTokens: int64(r.def.Config.MaxTokens), Tools: tools, Bounds: bounds,
		Ledger: r.s.Ledger, Text: r.s.Text}
	return l.Run(ctx, user)
}

// run is one conversation.
type run struct {
	*Agent
	s     Session
	acted int // actions that were confirmed
}

// system is the system prompt: the agent's own text, the skills by name and description, and the memory.
func (a *Agent) system(memory []block) string {
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

// tools are all tools of the conversation that the agent's file lets the model use.
func (r *run) tools(ctx context.Context) (out []llm.Tool, err error) {
	list := append(r.skillTools(), r.memoryTools()...)
	for _, d := range r.s.Delegates {
		list = append(list, own(r.confirm(d), "Task"))
	}
	served, err := r.serverTools(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, t := range append(list, served...) {
		if !r.permits(t) {
			continue
		}
		if names[t.Name] {
			r.o.Log.WarnContext(ctx, "a tool is left out, because another one has its name", "agent", r.def.ID(),
				"tool", t.Name)
			continue
		}
		names[t.Name] = true
		out = append(out, t.Tool)
	}
	return out, nil
}
