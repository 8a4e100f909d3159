package api

import (
	"context"

	"repute"
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
	ChainIDs        *[]Long
	Owner           *Address
	Wallet          *Address
	Service         *string
	Skill           *string
	Domain          *string
	SupportedTrust  *string
	Tag             *string
	X402            *bool
	Active          *bool
	Status          *string
	MinFeedback     *Long
	RegisteredSince *Time
	MinScore        *float64
	MaxScore        *float64
	Tier            *int32
	Rating          *string
}

// agentConnection is a page of agents.
type agentConnection struct {
	Nodes    []*agentNode
	PageInfo pageInfo
	Total    Total
	Match    *string
	AsOf     []AsOf

	api    *API
	filter searchdb.AgentFilter
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
	found, err := searchdb.Agents(ctx, q.api.db, f)
	if err != nil {
		return nil, renameCursor(searchError(err, "query"))
	}
	nodes := newNodes(q.api, found.Items, latest(), true)
	for i, n := range found.Similar {
		similar := Long(n)
		nodes[i].Similar = &similar
	}
	return &agentConnection{
		Nodes: nodes, PageInfo: pageInfo{found.Next != "", orNull(found.Next)},
		Total: encodeTotal(found.Total), Match: orNull(string(found.Match)), AsOf: each(found.AsOf, encodeAsOf), api: q.api,
		filter: f,
	}, nil
}

// searchCost is what a search costs beside its rows: it may read many thousands.
const searchCost = 500

// Facets counts what the agents found offer.
func (c *agentConnection) Facets(ctx context.Context) (*Facets, error) {
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	facets, err := searchdb.SearchFacets(ctx, c.api.db, c.filter)
	if err != nil {
		return nil, searchError(err, "query")
	}
	w := encodeFacets(facets)
	return &w, nil
}

// filter reads the arguments as the list's route does, so that both refuse the same.
func (args agentsArgs) filter(search bool) (f searchdb.AgentFilter, err error) {
	if args.Query != nil && *args.Query == "" {
		return f, repute.Invalid("query", "is empty", "give a text, or leave it out")
	}
	q, chains := args.Filter.query()
	q.Q = orEmpty(args.Query)
	if f, err = q.filter(chains); err != nil {
		return f, searchError(err, "query")
	}
	if f.Sort, f.Desc, err = parseSort(orEmpty(args.Sort), orEmpty(args.Order), search); err != nil {
		return f, err
	}
	f.Unfolded, f.After = args.Fold != nil && !*args.Fold, orEmpty(args.After)
	f.Limit, err = pageSize(args.First)
	return f, err
}

// query is the filter as the list's route takes it: text.
func (in *agentFilter) query() (q AgentsFilter, chains []uint64) {
	if in == nil {
		return q, nil
	}
	if in.ChainIDs != nil {
		for _, id := range *in.ChainIDs {
			chains = append(chains, uint64(max(id, 0)))
		}
	}
	q.Owner, q.Wallet = orEmpty(in.Owner), orEmpty(in.Wallet)
	q.Service, q.Skill, q.Domain = orEmpty(in.Service), orEmpty(in.Skill), orEmpty(in.Domain)
	q.Trust, q.Tag, q.Status = orEmpty(in.SupportedTrust), orEmpty(in.Tag), orEmpty(in.Status)
	q.X402, q.Active, q.MinFeedback = httpapi.Flag(textOf(in.X402)), httpapi.Flag(textOf(in.Active)),
		httpapi.Number(textOf(in.MinFeedback))
	q.Since, q.MinScore, q.MaxScore = httpapi.Moment(orEmpty(in.RegisteredSince)), httpapi.Real(textOf(in.MinScore)),
		httpapi.Real(textOf(in.MaxScore))
	q.Tier, q.RatedStatus = httpapi.Number(textOf(in.Tier)), orEmpty(in.Rating)
	return q, chains
}
