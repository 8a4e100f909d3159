package graph

import (
	"context"

	"repute"
	"repute/api/graph/runtimes"
	"repute/api/wire"
	"repute/internal/httpapi"
)

// Runtimes lists agents that work with this database, as of the last ten seconds, for callers with the role operate.
func (q *queryResolver) Runtimes(ctx context.Context) (*[]*runtimes.Runtime, error) {
	if err := httpapi.Allowed(ctx, httpapi.RoleOperate); err != nil {
		return nil, err
	}
	if err := charge(ctx, 2*searchCost); err != nil {
		return nil, err
	}
	db := q.index.DB
	out, err := countsOf(db).runtimes.Get(ctx, func(ctx context.Context) ([]*runtimes.Runtime, error) {
		return runtimes.Read(ctx, db)
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// Receipts lists the newest paid executions of an agent that works with this database, for callers with the role
// operate.
func (q *queryResolver) Receipts(ctx context.Context, args struct{ Agent wire.ID }) (*[]runtimes.Paid, error) {
	if err := httpapi.Allowed(ctx, httpapi.RoleOperate); err != nil {
		return nil, err
	}
	if err := charge(ctx, readCost+runtimes.ShownPaid); err != nil {
		return nil, err
	}
	out, err := runtimes.Receipts(ctx, q.index.DB, string(args.Agent))
	return &out, err
}

// RuntimeHealth asks the runtime of an agent for its health and receipts, through the guard of documents and within the
// limit of the reads that a caller may cause.
func (q *queryResolver) RuntimeHealth(ctx context.Context, args struct{ Agent wire.ID }) (*runtimes.Health, error) {
	if err := charge(ctx, checkCost); err != nil {
		return nil, err
	}
	agents, err := q.AgentsByID(ctx, struct{ IDs []wire.ID }{[]wire.ID{args.Agent}})
	if err != nil {
		return nil, err
	}
	if agents[0] == nil {
		return nil, &repute.MissingError{What: "agent", Why: "is not indexed", Hint: "see /agents"}
	}
	return runtimes.Ask(ctx, q.fetch, &agents[0].Agent)
}
