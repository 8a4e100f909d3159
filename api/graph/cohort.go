package graph

import (
	"context"
	"slices"
	"sync"

	graphql "github.com/graph-gophers/graphql-go"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/api/wire/work"
	"repute/store"
	"repute/store/manifestdb"
	"repute/store/query"
)

// cohort is agents that were read together. What hangs below them is read for
// all at the first question, so that a page costs a fixed number of statements
// without waiting for others to ask.
type cohort struct {
	index *answers.Index
	at    repute.At
	list  bool // several agents: what hangs below them without arguments is read at once
	ids   []repute.AgentID

	feedback    memo[map[repute.AgentID]store.FirstRows[repute.Feedback]]
	validations memo[map[repute.AgentID]store.FirstRows[repute.Validation]]
	reputations memo[map[repute.AgentID]query.Reputation]
	proofs      memo[map[repute.AgentID][]repute.DomainProof]
	manifests   memo[map[repute.AgentID]manifestdb.Summary]
	runs        memo[map[repute.AgentID]work.Page[work.AgentRun]]
	overTime
}

// memo remembers one read per key: a page size, or what else makes another question. The
// zero value is empty. An error is remembered like a value: the fields of all agents then have the same error, and
// nothing is read again for this query.
type memo[V any] struct {
	mu    sync.Mutex
	reads map[any]func() (V, error)
}

// get reads at the first call with this key; concurrent ones wait for it. read is called without the lock, so that
// reads with other keys do not wait for it. key MUST be comparable.
func (m *memo[V]) get(key any, read func() (V, error)) (V, error) {
	m.mu.Lock()
	if m.reads == nil {
		m.reads = map[any]func() (V, error){}
	}
	once, found := m.reads[key]
	if !found {
		once = sync.OnceValues(read)
		m.reads[key] = once
	}
	m.mu.Unlock()
	return once()
}

// feedbackOf gives an agent's newest ratings and whether there are more.
func (c *cohort) feedbackOf(ctx context.Context, id repute.AgentID, first int) ([]repute.Feedback, bool, error) {
	all, err := c.feedback.get(first, func() (map[repute.AgentID]store.FirstRows[repute.Feedback], error) {
		if err := charge(ctx, readCost+first*len(c.ids)); err != nil {
			return nil, err
		}
		return query.FeedbackByAgents(ctx, c.index.DB, c.ids, first)
	})
	return all[id].Items, all[id].More, err
}

// validationsOf gives an agent's newest validations and whether there are more.
func (c *cohort) validationsOf(ctx context.Context, id repute.AgentID, first int) ([]repute.Validation, bool, error) {
	all, err := c.validations.get(first, func() (map[repute.AgentID]store.FirstRows[repute.Validation], error) {
		if err := charge(ctx, readCost+first*len(c.ids)); err != nil {
			return nil, err
		}
		return query.ValidationsByAgents(ctx, c.index.DB, c.ids, first)
	})
	return all[id].Items, all[id].More, err
}

// costOf is what the parts cost per agent: tags and raters are many rows.
func costOf(p query.ReputationParts) int {
	cost := 1
	if p.Tags {
		cost += tagsCost
	}
	if p.Independence {
		cost += tagsCost
	}
	return cost
}

// tagsCost is what an agent's tags cost, and the figures of its raters, in a list.
const tagsCost = 10

// reputationOf gives those parts of an agent's reputation that the query asks for.
func (c *cohort) reputationOf(ctx context.Context, id repute.AgentID) (query.Reputation, error) {
	asks := func(fields ...string) bool {
		return slices.ContainsFunc(fields, func(f string) bool { return graphql.HasSelectedField(ctx, f) })
	}
	parts := query.ReputationParts{Summary: asks("summary"), Tags: asks("tags", "tagsTotal"), Results: asks("scored"),
		Independence: asks("independence")}
	return c.reputationBy(ctx, id, parts)
}

// scoreOf gives an agent's score with its result.
func (c *cohort) scoreOf(ctx context.Context, id repute.AgentID) (repute.Score, error) {
	r, err := c.reputationBy(ctx, id, query.ReputationParts{Results: true})
	return r.Score, err
}

// reputationBy reads the reputations of all agents of the answer when the first of them is asked
// for. The key is the set of parts, so that two aliases that select different parts are two reads.
func (c *cohort) reputationBy(ctx context.Context, id repute.AgentID, parts query.ReputationParts) (query.Reputation,
	error) {
	all, err := c.reputations.get(parts, func() (map[repute.AgentID]query.Reputation, error) {
		if err := charge(ctx, readCost+len(c.ids)*costOf(parts)); err != nil {
			return nil, err
		}
		return query.Reputations(ctx, c.index.DB, c.ids, parts)
	})
	return all[id], err
}

// proofsOf gives the domains of an agent's endpoints; none at another view than latest.
func (c *cohort) proofsOf(ctx context.Context, id repute.AgentID) ([]repute.DomainProof, error) {
	if c.at != answers.Latest() {
		return nil, nil
	}
	all, err := c.proofs.get(nil, func() (map[repute.AgentID][]repute.DomainProof, error) {
		if err := charge(ctx, readCost+len(c.ids)); err != nil {
			return nil, err
		}
		return query.DomainProofs(ctx, c.index.DB, c.ids...)
	})
	return all[id], err
}

// manifestOf gives an agent's manifest in short; null without one, and at another view than latest.
func (c *cohort) manifestOf(ctx context.Context, id repute.AgentID) (*wire.AgentManifest, error) {
	if c.at != answers.Latest() {
		return nil, nil
	}
	all, err := c.manifests.get(nil, func() (map[repute.AgentID]manifestdb.Summary, error) {
		if err := charge(ctx, readCost+len(c.ids)); err != nil {
			return nil, err
		}
		return manifestdb.OfAgents(ctx, c.index.DB, c.ids...)
	})
	m, found := all[id]
	if !found {
		return nil, err
	}
	return wire.EncodeAgentManifest(m), nil
}
