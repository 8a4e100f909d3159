package oaf

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"repute"
	"repute/agent/llm"
	"repute/agent/llm/oafagent"
	format "repute/manifest/oaf"
	"repute/orchestrator"
	"repute/orchestrator/standard"
)

// Module is an agent of the Open Agent Format that the orchestrator runs. One with sub-agents is a
// coordinator.
type Module struct {
	agent *oafagent.Agent
	info  standard.Info
	subs  []sub
}

// sub is a sub-agent.
type sub struct {
	format.AgentRef
	slug     string
	identity string // that the entry names, in the form of standard.Plan.Identities; empty for none
}

// New returns the module of an agent. id is its onchain identity, nil for none, and wallet the account of its
// key, empty for none.
func New(a *oafagent.Agent, id *repute.AgentID, wallet string) (*Module, error) {
	def := a.Definition()
	m := &Module{agent: a}
	for _, ref := range def.Agents {
		identity, err := oafagent.IdentityOf(ref)
		if err != nil {
			return nil, err
		}
		m.subs = append(m.subs, sub{ref, slugOf(ref), identity})
	}
	slug := Slug(def.ID())
	kind := "assistance"
	if len(m.subs) > 0 {
		kind = "task-coordination"
	}
	manifest := standard.Manifest{Schema: standard.ManifestSchema, Name: def.Name, Slug: slug, Version: def.Version,
		Description: def.Description, OperatorWallet: wallet, Capabilities: append([]string{kind}, def.Tags...),
		Tools: []standard.ManifestTool{}, TaskCategories: append([]string{"general"}, m.delegations()...),
		ComputeConstraints: standard.ComputeConstraints{MaxOnchainWrites: new(int64(0))},
		Safety:             standard.Safety{RequiresVerification: true}}
	if id != nil {
		manifest.ERC8004 = &standard.ManifestIdentity{AgentRegistry: id.Registry.Hex(),
			AgentID: json.Number(id.TokenID.Dec()),
			ChainID: id.ChainID}
	}
	m.info = standard.Info{Slug: slug, DisplayName: def.Name, Version: def.Version, IdentityMode: standard.IdentityMode,
		Manifest: manifest}
	return m, standard.CheckInfo(m.info, false)
}

var noSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug is the slug of an agent whose id is vendor/agent.
func Slug(id string) string {
	s := strings.Trim(noSlug.ReplaceAllString(strings.ToLower(id), "-"), "-")
	return strings.Trim(s[:min(len(s), 64)], "-")
}

// slugOf is the slug of the agent that an entry of agents means: that of the directory that was found for it, which the
// entry can name without its vendor, else of a registered agent.
func slugOf(ref format.AgentRef) string {
	if ref.Local != nil {
		return Slug(ref.Local.ID())
	}
	return Slug(ref.ID())
}

// delegations are the tasks that are delegated to sub-agents, each once.
func (m *Module) delegations() (out []string) {
	for _, s := range m.subs {
		for _, d := range s.Delegations {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// find returns the sub-agent of a name: its id, its key, its role, or a task that is delegated to it.
func (m *Module) find(name string) (sub, bool) {
	for _, same := range []func(s sub) bool{
		func(s sub) bool { return s.ID() == name || s.Agent == name || s.slug == name },
		func(s sub) bool { return s.Role == name && name != "" },
		func(s sub) bool { return slices.Contains(s.Delegations, name) }} {
		if i := slices.IndexFunc(m.subs, same); i >= 0 {
			return m.subs[i], true
		}
	}
	return sub{}, false
}

// Info implements orchestrator.Module.
func (m *Module) Info() standard.Info { return m.info }

// CanHandle implements orchestrator.Module.
func (m *Module) CanHandle(context.Context, standard.Task) (bool, error) { return true, nil }

// stepWork is the agent's own step; steps of agents that work before it begin with stepFirst.
const (
	stepWork  = "work"
	stepFirst = "first-"
)

// Plan implements orchestrator.Module. Sub-agents that the orchestration of the agent's file names for the
// task's tags work first, then the agent itself, which may delegate to every sub-agent.
func (m *Module) Plan(_ context.Context, t standard.Task, _ *orchestrator.Context) (p standard.Plan, err error) {
	own := standard.Step{ID: stepWork, Description: standard.StepText(t.Goal), Agent: m.info.Slug,
		DependsOn: []string{},
		Input:     t.Input}
	for _, s := range m.first(t) {
		step := standard.Step{ID: stepFirst + s.slug, Description: standard.StepText(t.Goal), Agent: s.slug,
			DependsOn: []string{},
			Input:     t.Input}
		if len(step.ID) > 64 {
			step.ID = step.ID[:64]
		}
		p.Steps, own.DependsOn = append(p.Steps, step), append(own.DependsOn, step.ID)
	}
	p.Steps = append(p.Steps, own)
	p.Identities = map[string]string{}
	for _, s := range m.subs {
		if s.identity != "" && s.slug != m.info.Slug {
			p.Identities[s.slug] = s.identity
		}
		if s.slug != m.info.Slug && !slices.Contains(p.OnDemand, s.slug) {
			p.OnDemand = append(p.OnDemand, s.slug)
		}
	}
	return p, nil
}

// first returns the sub-agents that work before the agent: that of the entrypoint, and those of triggers whose
// event is a tag of the task.
func (m *Module) first(t standard.Task) (out []sub) {
	o := m.agent.Definition().Orchestration
	names := []string{o.Entrypoint}
	for _, trigger := range o.Triggers {
		if slices.Contains(t.Tags, trigger.Event) {
			names = append(names, trigger.Action)
		}
	}
	for _, name := range names {
		s, ok := m.find(name)
		if ok && !slices.ContainsFunc(out, func(x sub) bool { return x.slug == s.slug }) {
			out = append(out, s)
		}
	}
	return out
}

// Execute implements orchestrator.Module.
func (m *Module) Execute(ctx context.Context, t standard.Task, p standard.Plan,
	c *orchestrator.Context) (standard.Execution, error) {
	return c.RunPlan(ctx, p, func(ctx context.Context, _ standard.Step, inputs map[string]json.RawMessage,
		c *orchestrator.Context) (json.RawMessage, error) {
		return m.work(ctx, t, inputs, c)
	})
}

// work is the agent's own step: the conversation, and the fallback where it fails.
func (m *Module) work(ctx context.Context, t standard.Task, inputs map[string]json.RawMessage,
	c *orchestrator.Context) (json.RawMessage, error) {
	budget, err := m.budget()
	if err != nil {
		return nil, err
	}
	led := &ledger{c: c, price: m.agent.Price, own: llm.Meter{Budget: budget, Price: m.agent.Price}}
	stream := &stream{c: c}
	scope, session := sessionOf(t, c)
	s := oafagent.Session{ID: session, Scope: scope, Ledger: led, Delegates: m.delegates(c), Confirm: c.Confirm,
		Text: func(turn int, text string) { stream.add(ctx, turn, text) }}
	if fallback, ok := m.find(m.agent.Definition().Orchestration.Fallback); ok {
		s.Fallback = func(ctx context.Context, sofar llm.Answer, err error) (llm.Answer, error) {
			stream.flush(ctx)
			result, failed := c.Delegate(ctx, fallback.slug, standard.StepText(t.Goal), t.Input)
			if failed != nil {
				return sofar, fmt.Errorf("%w; the fallback: %w", err, failed)
			}
			sofar.Text = delegated(result)
			return sofar, nil
		}
	}
	answer, err := m.agent.Run(ctx, s, prompt(t, inputs))
	stream.flush(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// sessionOf returns the sessions of the caller who gave the task, and the one of the task: nobody reads what others
// told the agent. A task that nobody is named for has a session of its own.
func sessionOf(t standard.Task, c *orchestrator.Context) (scope, session string) {
	scope = "tasks/" + url.PathEscape(c.Requester) + "/"
	if c.Requester == "" {
		scope += url.PathEscape(c.TaskID) + "/"
	}
	return scope, scope + cmp.Or(oafagent.SessionName(t.Input), c.TaskID)
}

// budget is the bound of the agent's own file.
func (m *Module) budget() (llm.Budget, error) {
	s := m.agent.Settings()
	return s.Budget()
}

// prompt is the message that begins a conversation.
func prompt(t standard.Task, inputs map[string]json.RawMessage) string {
	var b strings.Builder
	b.WriteString(t.Goal)
	if len(t.Input) > 0 && string(t.Input) != "null" {
		fmt.Fprintf(&b, "\n\nInput:\n%s", t.Input)
	}
	for _, step := range slices.Sorted(maps.Keys(inputs)) {
		fmt.Fprintf(&b, "\n\nResult of %s:\n%s", strings.TrimPrefix(step, stepFirst), delegated(inputs[step]))
	}
	return b.String()
}

// delegated is the text of another agent's run.
func delegated(result json.RawMessage) string {
	var d struct {
		Summary string                `json:"summary"`
		Steps   []standard.StepResult `json:"steps"`
	}
	if json.Unmarshal(result, &d) != nil {
		return string(result)
	}
	for _, s := range d.Steps {
		var a llm.Answer
		if s.StepID == stepWork && json.Unmarshal(s.Result, &a) == nil && a.Text != "" {
			return a.Text
		}
	}
	return d.Summary
}

// delegates are the tools by which the agent calls its sub-agents.
func (m *Module) delegates(c *orchestrator.Context) (out []llm.Tool) {
	for _, s := range m.subs {
		if s.slug == m.info.Slug {
			continue
		}
		about := fmt.Sprintf("Gives work to the agent %s and returns its answer.", s.ID())
		if s.Role != "" {
			about += " Its role: " + s.Role + "."
		}
		if len(s.Delegations) > 0 {
			about += " Its tasks: " + strings.Join(s.Delegations, ", ") + "."
		}
		name := "agent_" + strings.ReplaceAll(s.slug, "-", "_")
		out = append(out, llm.Tool{ToolDef: llm.ToolDef{Name: name[:min(len(name), 64)], Description: about,
			Schema: json.RawMessage(`{"type":"object","properties":{"task":{"type":"string"}},"required":["task"],"additionalProperties":false}`)},
			Direct: true, Run: func(ctx context.Context, input json.RawMessage) (string, error) {
				var q struct{ Task string }
				if err := json.Unmarshal(input, &q); err != nil || strings.TrimSpace(q.Task) == "" {
					return "", repute.Invalid("task", "is missing", "what the agent shall do")
				}
				result, err := c.Delegate(ctx, s.slug, q.Task, nil)
				return delegated(result), err
			}})
	}
	return out
}

// Verify implements orchestrator.Module: the agent's own step ended with an answer.
func (m *Module) Verify(_ context.Context, _ standard.Task, done standard.Execution,
	_ *orchestrator.Context) (v standard.Verification, err error) {
	a, ok := answerOf(done)
	check := standard.Check{Name: "answer", Passed: ok && strings.TrimSpace(a.Text) != ""}
	if !check.Passed {
		check.Details = "the model gave no answer"
	} else {
		v.Score = 1
	}
	v.Checks = []standard.Check{check}
	return v, nil
}

// answerOf is the answer of the agent's own step.
func answerOf(done standard.Execution) (a llm.Answer, ok bool) {
	for _, s := range done.Steps {
		if s.StepID == stepWork && s.Status == "completed" {
			return a, json.Unmarshal(s.Result, &a) == nil
		}
	}
	return a, false
}

// Summarize implements orchestrator.Module.
func (m *Module) Summarize(_ context.Context, _ standard.Task, done standard.Execution, _ standard.Verification,
	_ *orchestrator.Context) (standard.Summary, error) {
	a, _ := answerOf(done) // without an answer its text is empty
	s := standard.Summary{Text: a.Text, Receipts: []string{}, Warnings: []string{}, KeyActions: []string{
		fmt.Sprintf("%d turns, %d tool calls, %d tokens", a.Turns, a.ToolCalls, a.Usage.Total())}}
	if a.Refused > 0 {
		s.Warnings = append(s.Warnings,
			fmt.Sprintf("%d calls of tools were not made: one message of the model may have %d",
				a.Refused, llm.MaxCallsOfTurn))
	}
	return s, nil
}
