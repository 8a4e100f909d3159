package api

import (
	"context"

	"repute/api/answers"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/store/searchdb"
)

// agents answers lists and searches of agents of all or some chains.
func (a *API) agents(ctx context.Context, q *answers.AgentsQuery, chains []uint64) (*output[wire.AgentList], error) {
	f, err := q.Filter(chains)
	if err != nil {
		return nil, err
	}
	found, err := searchdb.Agents(ctx, a.DB, f)
	if err != nil {
		return nil, answers.SearchError(err, "q")
	}
	items := wire.Each(found.Items, wire.EncodeAgent)
	if err := a.AddManifests(ctx, found.Items, items); err != nil {
		return nil, err
	}
	for i, n := range found.Similar {
		items[i].Similar = new(wire.Long(n))
	}
	return ok(wire.AgentList{Items: items, Next: wire.OrNull(found.Next), Total: wire.EncodeTotal(found.Total),
		Match: wire.OrNull(string(found.Match)),
		AsOf:  wire.Each(found.AsOf, wire.EncodeAsOf)}), nil
}

// listFacets serves GET /agents/facets.
func (a *API) listFacets(ctx context.Context, in *facetsInput) (*output[stats.Facets], error) {
	chains, err := answers.ParseChains(in.ChainIDs)
	if err != nil {
		return nil, err
	}
	f, err := in.AgentsFilter.Filter(chains)
	if err != nil {
		return nil, err
	}
	facets, err := searchdb.SearchFacets(ctx, a.DB, f, "")
	if err != nil {
		return nil, answers.SearchError(err, "q")
	}
	return ok(stats.EncodeFacets(facets)), nil
}
