package graph

import (
	"context"
	"fmt"
	"strings"

	"repute"
	"repute/api/answers"
	"repute/api/batch"
	"repute/api/wire"
	"repute/internal/httpapi"
)

// matchCost is what the reputation of one agent of a batch costs, with its tags and raters.
const matchCost = tagsCost

// reputationsArgs are the arguments of Query.reputations.
type reputationsArgs struct {
	IDs     *[]wire.ID
	Wallets *[]wire.Address
	Domains *[]string
}

// reputationsNode is the reputations of a batch.
type reputationsNode struct {
	Items []reputationsItem
	AsOf  []wire.AsOf
}

// reputationsItem is what one item of a batch names.
type reputationsItem struct {
	Matches []reputationsMatch
	More    bool
	Problem *itemProblem
}

// reputationsMatch is an agent that an item names.
type reputationsMatch struct {
	Agent      wire.ID
	How        []string
	Proven     bool
	Reputation *reputationNode
}

// itemProblem is why an item has no answer.
type itemProblem struct {
	Code, Detail string
	Hint, Field  *string
}

// items returns the items in the order of the arguments, and how many agents they may name. An id names one agent at
// most, and a wallet or a domain up to MaxMatches.
func (args reputationsArgs) items() (items []batch.AgentItem, most int) {
	if args.IDs != nil {
		for _, id := range *args.IDs {
			items = append(items, batch.AgentItem{Agent: string(id)})
		}
	}
	most = len(items)
	if args.Wallets != nil {
		for _, w := range *args.Wallets {
			items = append(items, batch.AgentItem{Wallet: string(w)})
		}
	}
	if args.Domains != nil {
		for _, d := range *args.Domains {
			items = append(items, batch.AgentItem{Domain: d})
		}
	}
	return items, most + batch.MaxMatches*(len(items)-most)
}

// Reputations reads the reputations of many agents from one snapshot. It charges for the most agents that may be found,
// before anything is read. Nodes of agents that several items name are shared.
func (q *queryResolver) Reputations(ctx context.Context, args reputationsArgs) (*reputationsNode, error) {
	items, most := args.items()
	if len(items) > batch.MaxItems {
		return nil, repute.Invalid("ids", "not a number of agents that is answered",
			fmt.Sprintf("up to %d ids, wallets and domains together", batch.MaxItems))
	}
	if err := charge(ctx, readCost+matchCost*most); err != nil {
		return nil, err
	}
	found, err := batch.Read(ctx, q.index, items)
	if err != nil {
		return nil, err
	}
	nodes := make(map[repute.AgentID]*reputationNode, len(found.Reputations))
	group := &cohort{index: q.index, at: answers.Latest(), list: true}
	for id, r := range found.Reputations {
		scored, err := wire.EncodeScored(r.Score)
		if err != nil {
			return nil, fmt.Errorf("score of agent %s: %w", id.Short(), err)
		}
		nodes[id] = (&agentNode{key: id, group: group}).reputationNode(r, scored, new(wire.EncodeAsOf(r.AsOf)))
	}
	out := &reputationsNode{AsOf: wire.Each(found.AsOf, wire.EncodeAsOf)}
	for _, f := range found.Found {
		item := reputationsItem{Matches: []reputationsMatch{}, More: f.More,
			Problem: problemOf(batch.Problem(ctx, f.Err))}
		for _, m := range f.Matches {
			item.Matches = append(item.Matches, reputationsMatch{Agent: wire.ID(m.Agent.String()), How: batch.Ways(m),
				Proven: m.Proven, Reputation: nodes[m.Agent]})
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// problemOf writes a problem, nil for none.
func problemOf(b *httpapi.ErrorBody) *itemProblem {
	if b == nil {
		return nil
	}
	p := &itemProblem{Code: strings.ToUpper(b.Code), Detail: b.Detail, Hint: wire.OrNull(b.Hint)}
	if len(b.Errors) > 0 {
		p.Field = wire.OrNull(b.Errors[0].Field)
	}
	return p
}

// compareCost is what a comparison costs.
const compareCost = 5 * (1 + 2*tagsCost)

// Compare shows agents side by side.
func (q *queryResolver) Compare(ctx context.Context, args struct{ IDs []wire.ID }) (*batch.Comparison, error) {
	ids := wire.Each(args.IDs, func(id wire.ID) string { return string(id) })
	refs, err := batch.ParseIDs(strings.Join(ids, ","))
	if err != nil {
		return nil, err
	}
	if err := charge(ctx, readCost+compareCost); err != nil {
		return nil, err
	}
	c, err := batch.Compare(ctx, q.index, refs)
	return &c, err
}
