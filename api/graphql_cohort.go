package api

import (
	"context"
	"sync"

	"repute"
)

// cohort is agents that were read together. What hangs below them is read for
// all at the first question, so that a page costs a fixed number of statements
// without waiting for others to ask.
type cohort struct {
	api  *API
	at   repute.At
	list bool // several agents: only what can be read at once
	ids  []repute.AgentID

	feedback    memo[map[repute.AgentID][]repute.Feedback]
	validations memo[map[repute.AgentID][]repute.Validation]
	summaries   memo[map[repute.AgentID]repute.Summary]
	proofs      memo[map[repute.AgentID][]repute.DomainProof]
}

func (c *cohort) maxFirst() int {
	if c.list {
		return maxFirstInList
	}
	return maxLimit
}

// memo remembers one read per page size. The zero value is empty.
type memo[V any] struct {
	mu    sync.Mutex
	reads map[int]func() (V, error)
}

// get reads at the first call with this size; concurrent ones wait for it.
func (m *memo[V]) get(size int, read func() (V, error)) (V, error) {
	m.mu.Lock()
	if m.reads == nil {
		m.reads = map[int]func() (V, error){}
	}
	once, found := m.reads[size]
	if !found {
		once = sync.OnceValues(read)
		m.reads[size] = once
	}
	m.mu.Unlock()
	return once()
}

// feedbackOf gives an agent's newest ratings and whether there are more.
func (c *cohort) feedbackOf(ctx context.Context, id repute.AgentID, first int) ([]repute.Feedback, bool, error) {
	all, err := c.feedback.get(first, func() (map[repute.AgentID][]repute.Feedback, error) {
		if err := charge(ctx, readCost+first*len(c.ids)); err != nil {
			return nil, err
		}
		return c.api.db.FeedbackByAgents(ctx, c.ids, first+1)
	})
	rows, more := cut(all[id], first)
	return rows, more, err
}

// validationsOf gives an agent's newest validations and whether there are more.
func (c *cohort) validationsOf(ctx context.Context, id repute.AgentID, first int) ([]repute.Validation, bool, error) {
	all, err := c.validations.get(first, func() (map[repute.AgentID][]repute.Validation, error) {
		if err := charge(ctx, readCost+first*len(c.ids)); err != nil {
			return nil, err
		}
		return c.api.db.ValidationsByAgents(ctx, c.ids, first+1)
	})
	rows, more := cut(all[id], first)
	return rows, more, err
}

// summaryOf gives an agent's getSummary over all clients.
func (c *cohort) summaryOf(ctx context.Context, id repute.AgentID) (repute.Summary, error) {
	all, err := c.summaries.get(0, func() (map[repute.AgentID]repute.Summary, error) {
		if err := charge(ctx, readCost+len(c.ids)); err != nil {
			return nil, err
		}
		return c.api.db.SummariesByAgents(ctx, c.ids)
	})
	return all[id], err
}

// proofsOf gives the domains of an agent's endpoints; none at another view than latest.
func (c *cohort) proofsOf(ctx context.Context, id repute.AgentID) ([]repute.DomainProof, error) {
	if c.at != latest() {
		return nil, nil
	}
	all, err := c.proofs.get(0, func() (map[repute.AgentID][]repute.DomainProof, error) {
		if err := charge(ctx, readCost+len(c.ids)); err != nil {
			return nil, err
		}
		return c.api.db.DomainProofs(ctx, c.ids...)
	})
	return all[id], err
}

// cut removes the row that was read only to see whether there are more.
func cut[T any](rows []T, first int) ([]T, bool) {
	if len(rows) > first {
		return rows[:first], true
	}
	return rows, false
}
