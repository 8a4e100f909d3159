package graph

import (
	"context"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/store/docdb"
)

// Documents lists what the agent's URIs gave.
func (n *agentNode) Documents(ctx context.Context, args struct {
	First *int32
	After *string
}) (*connection[wire.DocumentVersion, *wire.AsOf], error) {
	first, err := paidPage(ctx, readCost, args.First)
	if err != nil {
		return nil, err
	}
	page, err := docdb.Versions(ctx, n.group.index.DB, n.key, orEmpty(args.After), first)
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[wire.DocumentVersion, *wire.AsOf]{wire.EncodeVersions(n.key, page.Items),
		pageInfoOf(page.Next), firstAsOf(page.AsOf)}, nil
}

// postKey marks the context of a query that was posted.
type postKey struct{}

// RefreshDocument has an agent's document read again. A link must not do that.
func (q *queryResolver) RefreshDocument(ctx context.Context, args struct{ ID wire.ID }) (*wire.RefreshAnswer, error) {
	if ctx.Value(postKey{}) == nil {
		return nil, repute.Invalid("query", "a mutation in a GET", "send it by POST")
	}
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	ref, err := answers.ParseAgent(string(args.ID), "")
	if err != nil {
		return nil, err
	}
	return q.index.RequestRefresh(ctx, ref)
}
