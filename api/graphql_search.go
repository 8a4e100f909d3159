package api

import (
	"context"

	"repute"
	"repute/store"
)

// searchArgs are the arguments of Query.search.
type searchArgs struct {
	Query  *string
	Filter *struct {
		ChainIDs       *[]Long
		Owner          *Address
		Wallet         *Address
		Service        *string
		Skill          *string
		Domain         *string
		SupportedTrust *string
		Tag            *string
		X402           *bool
		Active         *bool
		Status         *string
		MinFeedback    *Long
	}
	First *int32
	After *string
}

// searchConnection is a page of a search.
type searchConnection struct {
	Nodes    []*agentNode
	PageInfo pageInfo
	Total    Total
	AsOf     []AsOf

	api    *API
	filter store.SearchFilter
}

// Search finds agents. Everything below them is read once per page.
func (q *query) Search(ctx context.Context, args searchArgs) (*searchConnection, error) {
	f, err := args.filter()
	if err != nil {
		return nil, err
	}
	if err := charge(ctx, searchCost+f.Limit); err != nil {
		return nil, err
	}
	found, err := q.api.db.Search(ctx, f)
	if err != nil {
		return nil, renameCursor(searchError(err, "query"))
	}
	return &searchConnection{
		Nodes: newNodes(q.api, found.Items, latest(), true), PageInfo: pageInfo{found.Next != "", orNull(found.Next)},
		Total: encodeTotal(found.Total), AsOf: each(found.AsOf, encodeAsOf), api: q.api, filter: f,
	}, nil
}

// searchCost is what a search costs beside its rows: it may read many thousands.
const searchCost = 500

// Facets counts what the agents found offer.
func (c *searchConnection) Facets(ctx context.Context) (*Facets, error) {
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	facets, err := c.api.db.SearchFacets(ctx, c.filter)
	if err != nil {
		return nil, searchError(err, "query")
	}
	w := encodeFacets(facets)
	return &w, nil
}

func (args searchArgs) filter() (f store.SearchFilter, err error) {
	if f.Limit, err = pageSize(args.First, maxLimit); err != nil {
		return f, err
	}
	if args.Query != nil && *args.Query == "" {
		return f, repute.Invalid("query", "is empty", "give a text, or leave it out")
	}
	f.Text, f.After = orEmpty(args.Query), orEmpty(args.After)
	in := args.Filter
	if in == nil {
		return f, nil
	}
	if in.ChainIDs != nil {
		for _, id := range *in.ChainIDs {
			f.ChainIDs = append(f.ChainIDs, uint64(max(id, 0)))
		}
	}
	f.Service, f.Skill, f.Domain = orEmpty(in.Service), orEmpty(in.Skill), orEmpty(in.Domain)
	f.Trust, f.Tag, f.Status = orEmpty(in.SupportedTrust), orEmpty(in.Tag), repute.DocumentStatus(orEmpty(in.Status))
	f.X402, f.Active = in.X402, in.Active
	if in.MinFeedback != nil {
		f.MinFeedback = int64(*in.MinFeedback)
	}
	if f.Owner, err = parseOptionalAddress("owner", orEmpty(in.Owner)); err != nil {
		return f, err
	}
	if f.Wallet, err = parseOptionalAddress("wallet", orEmpty(in.Wallet)); err == nil {
		err = checkWallet(f.Wallet)
	}
	return f, err
}
