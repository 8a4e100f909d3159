package api

import (
	"context"
	"time"

	"repute"
	"repute/api/answers"
	"repute/api/batch"
	"repute/api/wire"
	"repute/store/docstats"
	"repute/store/query"
)

// agent serves GET /agents/{id}.
func (a *API) agent(ctx context.Context, ref repute.AgentRef, q *agentInput) (*output[wire.AgentAnswer], error) {
	agent, asOf, at, err := a.agentAt(ctx, ref, q.At)
	if err != nil {
		return nil, err
	}
	beside, err := a.Beside(ctx, agent, at)
	if err != nil {
		return nil, answers.UnknownAgent(err)
	}
	w := []wire.Agent{wire.EncodeAgentAt(agent, at)}
	if at == answers.Latest() {
		if err := a.AddManifests(ctx, []repute.Agent{agent}, w); err != nil {
			return nil, err
		}
	}
	return ok(wire.AgentAnswer{Agent: w[0], Beside: beside, AsOf: wire.EncodeAsOf(asOf)}), nil
}

// agentAt reads an agent at the block or finality of a query parameter.
func (a *API) agentAt(ctx context.Context, ref repute.AgentRef, view string) (agent repute.Agent, asOf repute.AsOf,
	at repute.At, err error) {
	if at, err = answers.ParseAt(view); err != nil {
		return agent, asOf, at, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return agent, asOf, at, err
	}
	agent, asOf, err = query.Agent(ctx, a.DB, id, at)
	return agent, asOf, at, answers.UnknownAgent(err)
}

// reputation serves GET /agents/{id}/reputation: score, gates and the summaries of feedback, from
// one snapshot.
func (a *API) reputation(ctx context.Context, ref repute.AgentRef,
	q *reputationInput) (*output[batch.ReputationAnswer], error) {
	sign, view, err := answers.SignedAt(q.Signed, q.At)
	if err != nil {
		return nil, err
	}
	at, err := answers.ParseAt(view)
	if err != nil {
		return nil, err
	}
	clients, err := answers.ParseAddresses("clients", q.Clients)
	if err != nil {
		return nil, err
	}
	by := answers.OwnRoots{Roots: q.Roots, Sources: q.Sources}
	if err := by.Check(sign, at); err != nil {
		return nil, err
	}
	openfi, err := q.OpenFi.Bool("openfi")
	if err != nil {
		return nil, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	r, err := query.ReadReputation(ctx, a.DB, id, query.ReputationQuery{Clients: clients, Tag1: q.Tag1, Tag2: q.Tag2,
		At: at, Run: sign})
	if err != nil {
		return nil, answers.UnknownAgent(err)
	}
	var signed *wire.SignedScore
	if sign {
		if signed, err = a.SignedScore(&r, time.Now()); err != nil {
			return nil, err
		}
	}
	scored, err := a.Scored(ctx, id, r.Score, by)
	if err != nil {
		return nil, answers.UnknownAgent(err)
	}
	var checks *wire.OpenFi
	if openfi {
		if checks, err = a.OpenFi(ctx, id, at); err != nil {
			return nil, answers.UnknownAgent(err)
		}
	}
	w := a.EncodeReputation(r, scored)
	w.Signed, w.OpenFi = signed, checks
	out := ok(batch.NewReputation(w))
	if sign {
		out.CacheControl = asked
	}
	return out, nil
}

// feedback returns a page of the ratings of an agent.
func (a *API) feedback(ctx context.Context, id repute.AgentID, f query.FeedbackFilter) (wire.FeedbackList, error) {
	page, err := query.Feedback(ctx, a.DB, id, f)
	return wire.FeedbackList{Items: wire.Each(page.Items, wire.EncodeFeedback), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}, err
}

// validations returns a page of the validations of an agent.
func (a *API) validations(ctx context.Context, id repute.AgentID, f query.ValidationFilter) (wire.ValidationList,
	error) {
	page, err := query.Validations(ctx, a.DB, id, f)
	return wire.ValidationList{Items: wire.Each(page.Items, wire.EncodeValidation), Next: wire.OrNull(page.Next),
		AsOf: wire.Each(page.AsOf, wire.EncodeAsOf)}, err
}

// listAgents serves GET /agents: a list, or a search if a search parameter is given.
func (a *API) listAgents(ctx context.Context, in *agentsInput) (*output[wire.AgentList], error) {
	chains, err := answers.ParseChains(in.ChainIDs)
	if err != nil {
		return nil, err
	}
	return a.agents(ctx, &in.AgentsQuery, chains)
}

// listChains serves GET /chains.
func (a *API) listChains(ctx context.Context, _ *answers.Request) (*output[wire.ChainList], error) {
	chains, err := query.Chains(ctx, a.DB)
	if err != nil {
		return nil, err
	}
	return ok(wire.ChainList{Items: wire.Each(chains, wire.EncodeChain)}), nil
}

// getChain serves GET /chains/{chainId}.
func (a *API) getChain(ctx context.Context, in *chainInput) (*output[wire.Chain], error) {
	chain, err := a.chain(ctx, string(in.ChainID))
	if err != nil {
		return nil, err
	}
	return ok(wire.EncodeChain(chain)), nil
}

// chain returns an indexed chain. The error names the indexed ones.
func (a *API) chain(ctx context.Context, id string) (repute.ChainStatus, error) {
	want, err := repute.ParseChainID(id)
	if err != nil {
		return repute.ChainStatus{}, err
	}
	chains, err := query.Chains(ctx, a.DB)
	if err != nil {
		return repute.ChainStatus{}, err
	}
	for _, c := range chains {
		if c.Chain.ID == want {
			return c, nil
		}
	}
	return repute.ChainStatus{}, repute.Missing("chain %d", want)
}

// chainStatus serves GET /chains/{chainId}/status.
func (a *API) chainStatus(ctx context.Context, in *chainInput) (*output[wire.StatusAnswer], error) {
	chain, err := a.chain(ctx, string(in.ChainID))
	if err != nil {
		return nil, err
	}
	return ok(a.StatusOf([]repute.ChainStatus{chain})), nil
}

// status serves GET /status.
func (a *API) status(ctx context.Context, _ *answers.Request) (*output[wire.StatusAnswer], error) {
	chains, err := query.Chains(ctx, a.DB)
	if err != nil {
		return nil, err
	}
	s := a.StatusOf(chains)
	s.Redis = a.server.Redis(ctx)
	fetching, err := docstats.ReadFetching(ctx, a.DB)
	if err != nil {
		return nil, err
	}
	s.Documents = answers.FetchState(fetching, time.Now())
	if a.restarts != nil {
		s.Database = databaseState(a.restarts())
	}
	return ok(s), nil
}

// databaseState returns the restarts of a managed Postgres, nil without any.
func databaseState(n int, last time.Time) *wire.DatabaseState {
	s := &wire.DatabaseState{Restarts: n}
	if !last.IsZero() {
		s.RestartedAt = new(last.UTC().Truncate(time.Second))
	}
	return s
}
