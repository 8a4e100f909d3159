package graph

import (
	"context"
	"errors"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
)

// manifestsArgs are the arguments of Query.manifests.
type manifestsArgs struct {
	Tier, VerifiedTier     *int32
	Domain, State, Network *string
	Priced                 *bool
	First                  *int32
	After                  *string
}

// Manifests lists manifests of domains.
func (q *queryResolver) Manifests(ctx context.Context, args manifestsArgs) (*connection[wire.Manifest, struct{}],
	error) {
	in := answers.ManifestsQuery{Tier: httpapi.Number(answers.TextOf(args.Tier)),
		VerifiedTier: httpapi.Number(answers.TextOf(args.VerifiedTier)), Domain: orEmpty(args.Domain),
		State: orEmpty(args.State), Priced: httpapi.Flag(answers.TextOf(args.Priced)), Network: orEmpty(args.Network)}
	f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	f.After = orEmpty(args.After)
	if f.Limit, err = paidPage(ctx, readCost, args.First); err != nil {
		return nil, err
	}
	list, err := q.index.Manifests(ctx, f)
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[wire.Manifest, struct{}]{Nodes: list.Items, PageInfo: pageInfo{list.Next != nil, list.Next}}, nil
}

// Manifest is a domain's manifest, null where the domain is not known.
func (q *queryResolver) Manifest(ctx context.Context, args struct{ Domain string }) (*wire.ManifestAnswer, error) {
	if err := charge(ctx, readCost+httpapi.MaxPage); err != nil {
		return nil, err
	}
	m, err := q.index.Manifest(ctx, args.Domain)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	}
	return m, err
}

// intentConnection is what a search of intents found, or a page of their list.
type intentConnection struct {
	Nodes    []wire.FoundIntent
	PageInfo pageInfo
	By       string
	Margin   *float64
	Unsure   bool
}

// intentsArgs are the arguments of Query.intents.
type intentsArgs struct {
	Query, Kind, Protocol, Network *string
	MaxPrice                       *wire.Decimal
	Tier                           *int32
	MinScore                       *float64
	First                          *int32
	After                          *string
}

// Intents searches what services offer.
func (q *queryResolver) Intents(ctx context.Context, args intentsArgs) (*intentConnection, error) {
	in := answers.IntentsQuery{Q: orEmpty(args.Query), Kind: orEmpty(args.Kind), Protocol: orEmpty(args.Protocol),
		Network: orEmpty(args.Network), MaxPrice: httpapi.Real(orEmpty(args.MaxPrice)),
		Tier: httpapi.Number(answers.TextOf(args.Tier)), MinScore: httpapi.Real(answers.TextOf(args.MinScore))}
	in.Cursor = orEmpty(args.After)
	f, err := in.Filter()
	if err != nil {
		return nil, renameCursor(err)
	}
	if f.Limit, err = paidPage(ctx, searchCost, args.First); err != nil {
		return nil, err
	}
	list, err := q.index.Intents(ctx, f)
	if err != nil {
		return nil, renameCursor(err)
	}
	return &intentConnection{list.Items, pageInfo{list.Next != nil, list.Next}, list.By, list.Margin, list.Unsure}, nil
}

// Manifest is the agent.json manifest of the agent in short.
func (n *agentNode) Manifest(ctx context.Context) (*wire.AgentManifest, error) {
	return n.group.manifestOf(ctx, n.key)
}
