package graph

import (
	"context"
	"errors"

	"repute"
	"repute/api/wire"
	"repute/api/wire/work"
)

// Work reads tasks and runs. Implementations check that the caller of the context may read them, as the routes under
// /v1 do.
type Work interface {
	// Tasks returns a page of tasks, the newest first.
	Tasks(context.Context, work.Filter) (work.Page[work.Task], error)
	// Runs returns a page of runs, the newest first.
	Runs(context.Context, work.Filter) (work.Page[work.RunLine], error)
	// AgentRuns returns a page of the runs of each agent, the newest first, in the order of agents. The number of
	// statements MUST NOT depend on how many agents and runs there are.
	AgentRuns(ctx context.Context, agents []repute.AgentID, first int, after string) ([]work.Page[work.AgentRun], error)
	// Run returns a run; repute.ErrNotFound if there is none.
	Run(ctx context.Context, id string) (work.Run, error)
}

// Treasurer reads what an orchestrator spends. Implementations check the caller as those of Work do.
type Treasurer interface {
	// Treasury returns the state of the treasury at the newest block; repute.ErrNotFound if none is configured.
	Treasury(context.Context) (work.Treasury, error)
	// Purchases returns what agents paid by x402.
	Purchases(context.Context) (work.PurchaseTotals, error)
}

// runCost is what one run with everything about it may cost.
const runCost = 1000

// noOrchestrator is the error of fields about tasks where no orchestrator is served.
func noOrchestrator() error {
	return &repute.MissingError{What: "orchestrator", Why: "is not served here",
		Hint: "ask a server that runs repute serve, which answers under /v1 too"}
}

// workArgs are the arguments of Query.tasks and Query.runs.
type workArgs struct {
	Status   *string
	Agent    *string
	Awaiting *bool
	First    *int32
	After    *string
}

// workPage reads a page of tasks or runs, and charges it before.
func workPage[N any](ctx context.Context, q *queryResolver, args workArgs,
	read func(Work, context.Context, work.Filter) (work.Page[N], error)) (*connection[N, struct{}], error) {
	if q.options.Work == nil {
		return nil, noOrchestrator()
	}
	first, err := paidPage(ctx, readCost, args.First)
	if err != nil {
		return nil, err
	}
	page, err := read(q.options.Work, ctx, work.Filter{Status: orEmpty(args.Status), Agent: orEmpty(args.Agent),
		Awaiting: isTrue(args.Awaiting), First: first, After: orEmpty(args.After)})
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[N, struct{}]{Nodes: page.Nodes, PageInfo: pageInfoOf(page.Next)}, nil
}

// Tasks lists tasks.
func (q *queryResolver) Tasks(ctx context.Context, args workArgs) (*connection[work.Task, struct{}], error) {
	return workPage(ctx, q, args, Work.Tasks)
}

// Runs lists runs.
func (q *queryResolver) Runs(ctx context.Context, args workArgs) (*connection[work.RunLine, struct{}], error) {
	return workPage(ctx, q, args, Work.Runs)
}

// workKey is the context key of the Work that fields below the root use: nodes have no other way to the options.
type workKey struct{}

// withWork lets fields below the root find what reads tasks and runs; nil where no orchestrator is served.
func withWork(ctx context.Context, w Work) context.Context {
	return context.WithValue(ctx, workKey{}, w)
}

// agentRunsArgs are the arguments of Agent.runs.
type agentRunsArgs struct {
	First *int32
	After *string
}

// agentRunCost is how many rows of the budget of a query a run in the list of an agent costs: the run, its newest call
// and its payments.
const agentRunCost = 3

// Runs lists the runs of the orchestrator that the agent does. They are read at once for all agents that were read
// together.
func (n *agentNode) Runs(ctx context.Context, args agentRunsArgs) (*connection[work.AgentRun, struct{}],
	error) {
	reader, served := ctx.Value(workKey{}).(Work)
	if !served {
		return nil, noOrchestrator()
	}
	first, err := pageSize(args.First)
	if err != nil {
		return nil, err
	}
	page, err := n.group.runsOf(ctx, reader, n.key, first, orEmpty(args.After))
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[work.AgentRun, struct{}]{Nodes: page.Nodes, PageInfo: pageInfoOf(page.Next)}, nil
}

// runsKey identifies a read of runs: its page size and cursor.
type runsKey struct {
	first int
	after string
}

// runsOf returns a page of the runs of an agent.
func (c *cohort) runsOf(ctx context.Context, reader Work, id repute.AgentID, first int,
	after string) (work.Page[work.AgentRun], error) {
	all, err := c.runs.get(runsKey{first, after}, func() (map[repute.AgentID]work.Page[work.AgentRun], error) {
		ids := distinct(c.ids)
		if err := charge(ctx, readCost+agentRunCost*first*len(ids)); err != nil {
			return nil, err
		}
		pages, err := reader.AgentRuns(ctx, ids, first, after)
		if err != nil {
			return nil, err
		}
		of := make(map[repute.AgentID]work.Page[work.AgentRun], len(ids))
		for i, id := range ids {
			of[id] = pages[i]
		}
		return of, nil
	})
	return all[id], err
}

// Run reads one run, nil when there is none.
func (q *queryResolver) Run(ctx context.Context, args struct{ ID wire.ID }) (*work.Run, error) {
	if q.options.Work == nil {
		return nil, noOrchestrator()
	}
	if err := charge(ctx, runCost); err != nil {
		return nil, err
	}
	run, err := q.options.Work.Run(ctx, string(args.ID))
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &run, nil
}

// Treasury reads the treasury.
func (q *queryResolver) Treasury(ctx context.Context) (*work.Treasury, error) {
	if q.options.Treasury == nil {
		return nil, noOrchestrator()
	}
	if err := charge(ctx, runCost); err != nil {
		return nil, err
	}
	t, err := q.options.Treasury.Treasury(ctx)
	if err != nil {
		return nil, err
	}
	return &t, nil
}

// Purchases reads what agents paid by x402.
func (q *queryResolver) Purchases(ctx context.Context) (*work.PurchaseTotals, error) {
	if q.options.Treasury == nil {
		return nil, noOrchestrator()
	}
	if err := charge(ctx, runCost); err != nil {
		return nil, err
	}
	totals, err := q.options.Treasury.Purchases(ctx)
	if err != nil {
		return nil, err
	}
	return &totals, nil
}
