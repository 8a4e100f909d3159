package control

import (
	"cmp"
	"context"
	"slices"

	"repute"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/orchestrator/control/agentlog"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/standard"
	"repute/orchestrator/trustgate"
	"repute/policy"
)

// Inputs and answers of OpenFi's tools. Answers that equal those of routes use the types of the
// routes.
type (
	agentPage struct {
		TaskAgentList
		Next string `json:"nextCursor,omitempty"`
	}
	logTool struct {
		rest.SlugTool
		Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"50" doc:"absent: 20"`
		Cursor string `json:"cursor,omitempty" doc:"nextCursor of the answer before"`
	}
	// RunTool names a run.
	RunTool struct {
		RunID string `json:"runId" doc:"run_…, as openfi_list_runs gives it"`
	}
	receiptsTool struct {
		RunTool
		rest.PageTool
	}
	trustTool struct {
		rest.SlugTool
		Value string `json:"valueAtRisk,omitempty" pattern:"^[0-9]{1,78}$" doc:"of the task it is judged for, in wei"`
	}
	recomputeTool struct {
		rest.SlugTool
		TrustQuestion
		rest.DryRunTool
	}
	submitTool struct {
		TaskRequest
		rest.DryRunTool
	}
	// submitted is a submitted task or, of a dry run, the expected decisions.
	submitted struct {
		DryRun       bool            `json:"dryRun"`
		Task         *Task           `json:"task,omitempty" doc:"with runId; its receipts come as it runs; absent in a dry run"`
		GateDecision *GateDecision   `json:"gateDecision,omitempty" doc:"of a dry run: what the trust gate says of the coordinator now"`
		Policy       *policyForecast `json:"policy,omitempty" doc:"of a dry run: what the rules say before there is a plan"`
		Budget       *policy.Budget  `json:"budget,omitempty" doc:"of a dry run: what the run would have"`
	}
	policyForecast struct {
		Effect  policy.Effect   `json:"effect" enum:"allow,deny,require_approval"`
		Reasons []policy.Reason `json:"reasons"`
	}
)

// addTools adds OpenFi's tools to a server.
func (c *Control) addTools(s *mcp.Server) error {
	if s == nil {
		return nil
	}
	for _, add := range []func(*mcp.Server) error{c.addAgentTools, c.addTaskTools, c.addRunTools, c.addTrustTools,
		c.treasury.AddTools} {
		if err := add(s); err != nil {
			return err
		}
	}
	return nil
}

// addAgentTools adds the tools about agents.
func (c *Control) addAgentTools(s *mcp.Server) error {
	return cmp.Or(
		mcp.Add(s, mcp.Tool[rest.PageTool, agentPage]{Name: "openfi_list_agents",
			Description: "Lists the agents that can be given tasks, by slug. Next: openfi_get_trust_summary, then openfi_submit_task.",
			Do:          c.listAgentsTool}),
		mcp.Add(s, mcp.Tool[rest.SlugTool, TaskAgent]{Name: "openfi_get_agent",
			Description: "One agent that can be given tasks. Next: openfi_get_agent_manifest says what it takes.",
			Do: func(ctx context.Context, in rest.SlugTool) (TaskAgent, error) {
				return rest.Body(c.getAgent(ctx, &rest.SlugInput{Slug: in.Slug}))
			}}),
		mcp.Add(s, mcp.Tool[rest.SlugTool, standard.Manifest]{Name: "openfi_get_agent_manifest",
			Description: "The agent's capability manifest (agent.json): what it takes, its tools, constraints, safety, endpoints.",
			Do:          c.manifestTool}),
		mcp.Add(s, mcp.Tool[logTool, agentlog.File]{Name: "openfi_get_agent_log",
			Description: "The agent's append-only log (agent_log.json): its runs, oldest first, in short.",
			Do: rest.Private(c.router, func(ctx context.Context, in logTool) (w agentlog.File, err error) {
				m, err := c.module(ctx, in.Slug)
				if err != nil {
					return w, err
				}
				return c.agentLog(ctx, m, rest.Text(in.Limit), in.Cursor)
			})}),
	)
}

// addRunTools adds the tools about runs.
func (c *Control) addRunTools(s *mcp.Server) error {
	return cmp.Or(
		mcp.Add(s, mcp.Tool[RunTool, Run]{Name: "openfi_get_run",
			Description: "One run of a task: phases, steps, what it used of its budget, result, reasons of a refusal. awaited shows what a person must decide; next: openfi_approve_run.",
			Do: rest.Private(c.router,
				func(ctx context.Context, in RunTool) (Run, error) { return c.Run(ctx, in.RunID) })}),
		mcp.Add(s, mcp.Tool[receiptsTool, ReceiptList]{Name: "openfi_get_run_receipts",
			Description: "What a run reached outside itself, as the runtime recorded it: tools, HTTP, chain, transactions, other agents.",
			Do: rest.Private(c.router, func(ctx context.Context, in receiptsTool) (ReceiptList, error) {
				return rest.Body(c.listReceipts(ctx, &runPageInput{in.RunID, in.Input()}))
			})}),
		mcp.Add(s, mcp.Tool[submitTool, submitted]{Name: "openfi_submit_task",
			Description: "Asks a coordinator for a task. The run goes on by itself; next: openfi_get_run of task.runId. With dry_run the answer says what trust gate and policy would decide.",
			Effect:      mcp.Effect{Changes: true, World: true}, Do: c.submitTool}),
	)
}

// addTrustTools adds the tools about trust in agents.
func (c *Control) addTrustTools(s *mcp.Server) error {
	return cmp.Or(
		mcp.Add(s, mcp.Tool[trustTool, TrustAnswer]{Name: "openfi_get_trust_summary",
			Description: "What the trust gate says of an agent now, with all reasons and what is missing. Next: repute_explain_score.",
			Do: func(ctx context.Context, in trustTool) (TrustAnswer, error) {
				return rest.Body(c.getTrust(ctx, &trustInput{in.Slug, in.Value}))
			}}),
		mcp.Add(s, mcp.Tool[recomputeTool, TrustAnswer]{Name: "openfi_recompute_trust_summary",
			Description: "Judges an agent again and makes its score again from the stored evidence; verified false: do not rely on it.",
			Effect:      mcp.Effect{Changes: true, Repeats: true}, Do: c.recomputeTool}),
	)
}

// listAgentsTool is the tool openfi_list_agents.
func (c *Control) listAgentsTool(ctx context.Context, in rest.PageTool) (w agentPage, err error) {
	list, err := c.Agents(ctx)
	if err != nil {
		return w, err
	}
	w.Agents = agentsAfter(list, in.Cursor)
	if size := cmp.Or(in.Limit, httpapi.DefaultPage); len(w.Agents) > size {
		w.Agents = w.Agents[:size]
		w.Next = w.Agents[size-1].Slug
	}
	return w, nil
}

// agentsAfter returns the agents whose slugs are after one, in the order of bytes. The database has the order of its
// collation, in which hyphens may not count: the agent of a cursor may have been removed, so that its place is found
// by comparing.
func agentsAfter(list []TaskAgent, slug string) []TaskAgent {
	bySlug := func(a TaskAgent, slug string) int { return cmp.Compare(a.Slug, slug) }
	slices.SortFunc(list, func(a, b TaskAgent) int { return bySlug(a, b.Slug) })
	from, found := slices.BinarySearchFunc(list, slug, bySlug)
	if found {
		from++
	}
	return list[from:]
}

// manifestTool is the tool openfi_get_agent_manifest.
func (c *Control) manifestTool(ctx context.Context, in rest.SlugTool) (w standard.Manifest, err error) {
	m, err := c.module(ctx, in.Slug)
	if err != nil {
		return w, err
	}
	f, err := manifestOf(m)
	return capabilityOf(m, f), err
}

// recomputeTool is the tool openfi_recompute_trust_summary. A dry run judges without replaying.
func (c *Control) recomputeTool(ctx context.Context, in recomputeTool) (w TrustAnswer, err error) {
	by, err := c.router.Caller(ctx, httpapi.RoleRead)
	if err != nil {
		return w, err
	}
	if !in.DryRun {
		return rest.Body(c.recomputeTrust(ctx, by, &rest.SlugInput{Slug: in.Slug}, in.TrustQuestion))
	}
	v, err := c.decideGate(ctx, in.Slug, in.TrustQuestion)
	return TrustAnswer{Agent: in.Slug, Decision: gateDecisionOnWire(v)}, err
}

// submitTool is the tool openfi_submit_task. A dry run says what would be decided. The tool has no header, so that
// its key is idempotencyKey alone.
func (c *Control) submitTool(ctx context.Context, in submitTool) (w submitted, err error) {
	by, err := c.router.Caller(ctx, httpapi.RoleAsk)
	if err != nil {
		return w, err
	}
	if in.DryRun {
		return c.foresee(ctx, by, in.TaskRequest)
	}
	t, err := rest.Body(c.submitTask(ctx, by, &submitInput{}, in.TaskRequest))
	return submitted{Task: &t}, err
}

// foresee returns the decisions about a task as far as they are known before it is planned. It
// stores nothing.
func (c *Control) foresee(ctx context.Context, by string, r TaskRequest) (w submitted, err error) {
	asked, err := c.request(ctx, by, "", &r)
	if err != nil {
		return w, err
	}
	m, err := c.module(ctx, asked.Coordinator)
	if err != nil {
		return w, err
	}
	p := c.o.Policy()
	task := policy.Task{Goal: r.Goal, Coordinator: asked.Coordinator, Value: cmp.Or(r.ValueAtRisk, "0"), Tags: r.Tags,
		Budget: p.Budget(r.Budget)}
	v, err := trustgate.Decide(ctx, c.db, p, c.o.Lenient, m, task, r.Threshold)
	if err != nil {
		return w, err
	}
	d := p.Decide(ctx, &policy.Input{Phase: repute.PhasePolicy.String(), Task: task, Agent: v.Agent,
		Plan: policy.Plan{Agents: []string{asked.Coordinator}}})
	return submitted{DryRun: true, GateDecision: gateDecisionOnWire(v),
		Policy: &policyForecast{d.Effect, rest.OrEmpty(d.Reasons)}, Budget: &task.Budget}, nil
}
