package workgraph

import (
	"context"

	"repute"
	"repute/api/wire"
	"repute/api/wire/work"
	"repute/orchestrator/control"
	"repute/orchestrator/control/rest"
	"repute/store/rundb"
)

// AgentRuns returns a page of the runs of each identity on the chain, the newest first, in the order of agents. It
// takes three statements in two round trips, however many agents there are.
func (r Reader) AgentRuns(ctx context.Context, agents []repute.AgentID, first int,
	after string) ([]work.Page[work.AgentRun], error) {
	if err := r.permit(ctx); err != nil {
		return nil, err
	}
	var f rundb.RunFilter
	var err error
	for _, id := range agents { // a cursor is one agent's
		if f.Before, f.BeforeID, err = listOf(id).ReadCursor(after); err != nil {
			return nil, err
		}
	}
	lists, err := rundb.AgentRuns(ctx, r.db, wire.Each(agents, func(id repute.AgentID) repute.AgentRef {
		return repute.AgentRef{ChainID: id.ChainID, Registry: &id.Registry, TokenID: id.TokenID}
	}), f, first+1)
	if err != nil {
		return nil, err
	}
	pages, all := make([]work.Page[work.AgentRun], len(lists)), []repute.Run{}
	for i := range lists {
		if lists[i], pages[i].Next, err = control.CutRuns(lists[i], first, listOf(agents[i])); err != nil {
			return nil, err
		}
		all = append(all, lists[i]...)
	}
	details, err := rundb.ReadDetails(ctx, r.db, all)
	if err != nil {
		return nil, err
	}
	for i, list := range lists {
		pages[i].Nodes = wire.Each(list, func(r repute.Run) work.AgentRun { return agentRunInGraph(r, details[r.ID]) })
	}
	return pages, nil
}

// listOf is the list of the runs of an agent.
func listOf(id repute.AgentID) rest.List { return control.ListOfRuns("", "", id.String(), false) }

// agentRunInGraph converts a run into its form in the list of an agent.
func agentRunInGraph(r repute.Run, d rundb.RunDetails) work.AgentRun {
	out := work.AgentRun{RunLine: lineInGraph(r), PaidUsd: wire.Decimal(d.Purchases.String()),
		Trust: wire.OrNull(d.Trust), Verified: d.Verified}
	if d.LastCall != nil {
		call := receiptInGraph(*d.LastCall)
		out.LastCall = &call
	}
	return out
}
