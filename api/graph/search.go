package graph

import (
	"cmp"
	"context"

	graphql "github.com/graph-gophers/graphql-go"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/internal/httpapi"
	"repute/store/searchdb"
)

// agentsArgs are the arguments of Query.agents and Query.search.
type agentsArgs struct {
	Query  *string
	Filter *agentFilter
	Fold   *bool
	Sort   *string
	Order  *string
	First  *int32
	After  *string
}

// agentFilter is AgentFilter of the schema.
type agentFilter struct {
	ChainIDs        *[]wire.Long
	Owner           *wire.Address
	Wallet          *wire.Address
	Operator        *wire.Address
	Host            *string
	Service         *string
	Skill           *string
	Domain          *string
	SupportedTrust  *string
	Tag             *string
	X402            *bool
	Active          *bool
	Status          *string
	MinFeedback     *wire.Long
	RegisteredSince *wire.Time
	UpdatedSince    *wire.Time
	// Numbers of blocks in place of times.
	RegisteredSinceBlock, UpdatedSinceBlock *wire.Long

	MinScore *float64
	MaxScore *float64
	Tier     *int32
	Rating   *string

	MinPrice, MaxPrice *wire.Decimal
}

// agentConnection is a page of agents.
type agentConnection struct {
	Nodes    []*agentNode
	PageInfo pageInfo
	Total    wire.Total
	Match    *string
	AsOf     []wire.AsOf

	index  *answers.Index
	filter searchdb.AgentFilter
	found  searchdb.Found
}

// Agents lists agents. Everything below them is read once per page, not once
// per agent.
func (q *queryResolver) Agents(ctx context.Context, args agentsArgs) (*agentConnection, error) {
	return q.agents(ctx, args, args.Query != nil)
}

// Search is Agents in the order of their matches by default.
func (q *queryResolver) Search(ctx context.Context, args agentsArgs) (*agentConnection, error) {
	return q.agents(ctx, args, true)
}

// agents answers both fields that list agents; search is by relevance where no order is given.
func (q *queryResolver) agents(ctx context.Context, args agentsArgs, search bool) (*agentConnection, error) {
	f, err := args.filter(search)
	if err != nil {
		return nil, err
	}
	cost := readCost
	if !f.IsPlain() {
		cost = searchCost
	}
	if err := charge(ctx, cost+f.Limit); err != nil {
		return nil, err
	}
	f.CountOnly = !graphql.HasSelectedField(ctx, "nodes") && !graphql.HasSelectedField(ctx, "pageInfo")
	found, err := searchdb.Agents(ctx, q.index.DB, f)
	if err != nil {
		return nil, renameCursor(answers.SearchError(err, "query"))
	}
	nodes := newNodes(q.index, found.Items, answers.Latest(), true)
	for i, n := range found.Similar {
		nodes[i].Similar = new(wire.Long(n))
	}
	return &agentConnection{
		Nodes: nodes, PageInfo: pageInfoOf(found.Next),
		Total: wire.EncodeTotal(found.Total), Match: wire.OrNull(string(found.Match)),
		AsOf: wire.Each(found.AsOf, wire.EncodeAsOf), index: q.index,
		filter: f, found: found,
	}, nil
}

// searchCost is what a search costs beside its rows: it may read many thousands.
const searchCost = 500

// Facets counts what the agents found offer.
func (c *agentConnection) Facets(ctx context.Context) (*stats.Facets, error) {
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	if c.filter.Text != "" && c.found.Match == "" && c.found.Total == (searchdb.Count{}) {
		return new(stats.EncodeFacets(searchdb.Facets{AsOf: c.found.AsOf})), nil // nothing matches, in any way
	}
	facets, err := searchdb.SearchFacets(ctx, c.index.DB, c.filter, c.found.Match)
	if err != nil {
		return nil, answers.SearchError(err, "query")
	}
	out := stats.EncodeFacets(facets)
	return &out, nil
}

// filter reads the arguments as the list's route does, so that both refuse the same.
func (args agentsArgs) filter(search bool) (f searchdb.AgentFilter, err error) {
	if args.Query != nil && *args.Query == "" {
		return f, repute.Invalid("query", "is empty", "give a text, or leave it out")
	}
	q, chains := args.Filter.query()
	q.Q = orEmpty(args.Query)
	if f, err = q.Filter(chains); err != nil {
		return f, answers.SearchError(err, "query")
	}
	if f.Sort, f.Desc, err = answers.ParseSort(orEmpty(args.Sort), orEmpty(args.Order), search); err != nil {
		return f, err
	}
	f.Unfolded, f.After = args.Fold != nil && !*args.Fold, orEmpty(args.After)
	f.Limit, err = pageSize(args.First)
	return f, err
}

// query is the filter as the list's route takes it: text.
func (in *agentFilter) query() (q answers.AgentsFilter, chains []uint64) {
	if in == nil {
		return q, nil
	}
	chains = chainsOf(in.ChainIDs)
	q.Owner, q.Wallet = orEmpty(in.Owner), orEmpty(in.Wallet)
	q.Service, q.Skill, q.Domain = orEmpty(in.Service), orEmpty(in.Skill), orEmpty(in.Domain)
	q.Trust, q.Tag, q.Status = orEmpty(in.SupportedTrust), orEmpty(in.Tag), orEmpty(in.Status)
	q.X402, q.Active, q.MinFeedback = httpapi.Flag(answers.TextOf(in.X402)), httpapi.Flag(answers.TextOf(in.Active)),
		httpapi.Number(answers.TextOf(in.MinFeedback))
	q.MinScore, q.MaxScore = httpapi.Real(answers.TextOf(in.MinScore)), httpapi.Real(answers.TextOf(in.MaxScore))
	q.MinPrice, q.MaxPrice = httpapi.Real(orEmpty(in.MinPrice)), httpapi.Real(orEmpty(in.MaxPrice))
	q.Operator, q.Host = orEmpty(in.Operator), orEmpty(in.Host)
	q.Since = httpapi.Since(cmp.Or(answers.TextOf(in.RegisteredSinceBlock), orEmpty(in.RegisteredSince)))
	q.Updated = httpapi.Since(cmp.Or(answers.TextOf(in.UpdatedSinceBlock), orEmpty(in.UpdatedSince)))
	q.Tier, q.RatedStatus = httpapi.Number(answers.TextOf(in.Tier)), orEmpty(in.Rating)
	return q, chains
}
