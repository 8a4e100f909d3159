package web

import (
	"context"
	"fmt"
	"time"

	"repute/web/failure"
	"repute/web/query"
)

// agentRunRows is how many runs the page of an agent's work lists at once.
const agentRunRows = 15

// agentRun is a run in the list of its agent.
type agentRun struct {
	ID, TaskID              string
	Step                    *string
	Agent, Goal, Status     string
	Awaiting                bool
	Error                   *string
	Created, Started, Ended *time.Time
	LastCall                *struct {
		Kind, Ref, Summary string
		Done               bool
		Error              *string
	}
	PaidUsd  string
	Trust    *string
	Verified *float64
}

// Over reports whether the run has ended.
func (r agentRun) Over() bool { return runLine{Status: r.Status}.Over() }

// Took returns how long the run has worked, in milliseconds; -1 where it has not begun or has not ended.
func (r agentRun) Took() int64 { return took(r.Started, r.Ended) }

// agentRuns returns the section with the runs of the agent of a page. A failed read is shown in the section and does
// not change the status of the page.
func (s *site) agentRuns(ctx context.Context, p *page) guarded {
	l, err := ask[struct {
		AgentsByID []*struct{ Runs listOf[agentRun] }
	}](ctx, s, p, "agent_runs", query.Given(map[string]any{"id": p.ID, "first": agentRunRows,
		"after": p.Query.Get("runs")}))
	if err == nil && (len(l.AgentsByID) != 1 || l.AgentsByID[0] == nil) {
		err = fmt.Errorf("agent %s: %w", p.ID, failure.ErrNowhere)
	}
	if failure.NotServed(err) {
		return guarded{Why: new(failure.Of(err))} // the same for every caller: guard would make the page private
	}
	shown := struct {
		Runs []agentRun
		Next string
	}{}
	live := false
	if err == nil {
		runs := l.AgentsByID[0].Runs
		shown.Runs = runs.Nodes
		if c := runs.PageInfo; c.HasNextPage && c.EndCursor != nil {
			shown.Next = p.With("after", p.Query.Get("after"), "runs", *c.EndCursor)
		}
		for _, r := range runs.Nodes {
			live = live || !r.Over()
		}
	}
	g := guard(p, shown, live, err)
	p.Status, p.Retry = 0, "" // guard set them where the read failed
	return g
}
