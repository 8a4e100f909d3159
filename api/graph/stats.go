package graph

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/api/wire/stats"
	"repute/internal/httpapi"
	"repute/store"
	"repute/store/query"
)

// clientNode is a reviewer.
type clientNode struct {
	stats.Client
	AsOf []wire.AsOf

	index *answers.Index
	of    common.Address
	among []uint64 // chains
}

// Client reads a reviewer.
func (q *queryResolver) Client(ctx context.Context, args struct {
	Address  wire.Address
	ChainIDs *[]wire.Long
}) (*clientNode, error) {
	n := &clientNode{index: q.index, among: chainsOf(args.ChainIDs)}
	var err error
	if n.of, err = repute.ParseAddress("address", string(args.Address)); err != nil {
		return nil, err
	}
	if err := charge(ctx, 2*readCost); err != nil {
		return nil, err
	}
	if n.Client, n.AsOf, err = q.index.Client(ctx, n.of, n.among); err != nil {
		return nil, err
	}
	return n, nil
}

// Feedback lists what the reviewer rated. The agents of a page are read at once.
func (n *clientNode) Feedback(ctx context.Context, args struct {
	First          *int32
	After          *string
	IncludeRevoked *bool
}) (*connection[*feedbackNode, []wire.AsOf], error) {
	f := query.ParticipantFilter{ChainIDs: n.among, After: orEmpty(args.After),
		IncludeRevoked: isTrue(args.IncludeRevoked)}
	return participantPage(ctx, n.index, n.of, f, args.First, query.FeedbackOf,
		func(f repute.Feedback) repute.AgentID { return f.Agent },
		func(f repute.Feedback, agent *agentNode) *feedbackNode {
			return &feedbackNode{wire.EncodeFeedback(f), agent}
		})
}

// participantPage reads a page of the ratings of a client or the validations of a validator, and the agents that they
// name. It takes as many statements for one agent as for many.
func participantPage[T, N any](ctx context.Context, x *answers.Index, of common.Address, f query.ParticipantFilter,
	first *int32,
	read func(context.Context, *store.DB, common.Address, query.ParticipantFilter, query.Beside) (store.Page[T], error),
	agentOf func(T) repute.AgentID, node func(T, *agentNode) N) (*connection[N, []wire.AsOf], error) {
	var err error
	if f.Limit, err = pageSize(first); err != nil {
		return nil, err
	}
	if err := charge(ctx, 2*(readCost+f.Limit)); err != nil {
		return nil, err
	}
	page, err := read(ctx, x.DB, of, f, nil)
	if err != nil {
		return nil, renameCursor(err)
	}
	agents, err := nodesOf(ctx, x, wire.Each(page.Items, agentOf))
	if err != nil {
		return nil, err
	}
	return &connection[N, []wire.AsOf]{wire.Each(page.Items, func(t T) N { return node(t, agents[agentOf(t)]) }),
		pageInfoOf(page.Next), wire.Each(page.AsOf, wire.EncodeAsOf)}, nil
}

// nodesOf reads agents at once. The agents are of the newest state, also where the page is older by a moment.
func nodesOf(ctx context.Context, x *answers.Index, ids []repute.AgentID) (map[repute.AgentID]*agentNode, error) {
	ids = distinct(ids)
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := query.AgentsByID(ctx, x.DB, ids)
	if err != nil {
		return nil, err
	}
	agents := wire.Each(ids, func(id repute.AgentID) repute.Agent { return found[id] })
	nodes := make(map[repute.AgentID]*agentNode, len(ids))
	for _, n := range newNodes(x, agents, answers.Latest(), true) {
		nodes[n.key] = n
	}
	return nodes, nil
}

// validatorNode is a validator.
type validatorNode struct {
	Address wire.Address
	Chains  []stats.ValidatorChain
	AsOf    []wire.AsOf

	index  *answers.Index
	of     common.Address
	filter query.ParticipantFilter
}

// Validator reads how a validator answers.
func (q *queryResolver) Validator(ctx context.Context, args struct {
	Address     wire.Address
	ChainIDs    *[]wire.Long
	TrustedOnly *bool
}) (*validatorNode, error) {
	a, err := repute.ParseAddress("address", string(args.Address))
	if err != nil {
		return nil, err
	}
	if err := charge(ctx, 2*readCost); err != nil {
		return nil, err
	}
	n := &validatorNode{Address: wire.AddressOf(a), index: q.index, of: a,
		filter: query.ParticipantFilter{ChainIDs: chainsOf(args.ChainIDs), TrustedOnly: isTrue(args.TrustedOnly)}}
	n.Chains, n.AsOf, err = q.index.Validator(ctx, a, n.filter)
	return n, err
}

// Validators lists validators.
func (q *queryResolver) Validators(ctx context.Context, args struct {
	ChainIDs    *[]wire.Long
	TrustedOnly *bool
	First       *int32
	After       *string
}) (*connection[stats.ValidatorChain, []wire.AsOf], error) {
	in := answers.ValidatorsQuery{TrustedOnly: httpapi.Flag(answers.TextOf(args.TrustedOnly))}
	in.Cursor = orEmpty(args.After)
	f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	f.ChainIDs = chainsOf(args.ChainIDs)
	if f.Limit, err = paidPage(ctx, searchCost, args.First); err != nil {
		return nil, err
	}
	list, err := q.index.Validators(ctx, f)
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[stats.ValidatorChain, []wire.AsOf]{list.Items, pageInfo{list.Next != nil, list.Next},
		list.AsOf}, nil
}

// Validations lists what the validator was asked for. The agents of a page are read at once.
func (n *validatorNode) Validations(ctx context.Context, args struct {
	First *int32
	After *string
}) (*connection[*validationNode, []wire.AsOf], error) {
	f := n.filter
	f.After = orEmpty(args.After)
	return participantPage(ctx, n.index, n.of, f, args.First, query.ValidationsOf,
		func(v repute.Validation) repute.AgentID { return v.Agent },
		func(v repute.Validation, agent *agentNode) *validationNode {
			return &validationNode{wire.EncodeValidation(v), agent}
		})
}

// Tags lists the tags of ratings.
func (q *queryResolver) Tags(ctx context.Context, args struct {
	Tag1     *string
	ChainIDs *[]wire.Long
	First    *int32
	After    *string
}) (*connection[stats.Tag, []wire.AsOf], error) {
	var in answers.TagsQuery
	in.Cursor = orEmpty(args.After)
	f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	f.Tag1, f.ChainIDs = args.Tag1, chainsOf(args.ChainIDs)
	if f.Limit, err = paidPage(ctx, searchCost, args.First); err != nil {
		return nil, err
	}
	list, err := q.index.Tags(ctx, f)
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[stats.Tag, []wire.AsOf]{list.Items, pageInfo{list.Next != nil, list.Next}, list.AsOf}, nil
}

// leaderNode is a ranked agent.
type leaderNode struct {
	Rank  wire.Long
	Value float64
	stats.Growth
	Agent *agentNode
}

// Leaderboard ranks agents. What hangs below them is read once per page.
func (q *queryResolver) Leaderboard(ctx context.Context, args struct {
	By, Period   *string
	MinReviewers *wire.Long
	ChainIDs     *[]wire.Long
	First        *int32
	After        *string
}) (*connection[leaderNode, []wire.AsOf], error) {
	in := answers.LeadersQuery{By: orEmpty(args.By), Period: orEmpty(args.Period),
		MinReviewers: httpapi.Number(answers.TextOf(args.MinReviewers))}
	in.Cursor = orEmpty(args.After)
	f, err := in.Filter()
	if err != nil {
		return nil, err
	}
	f.ChainIDs = chainsOf(args.ChainIDs)
	if f.Limit, err = paidPage(ctx, searchCost, args.First); err != nil {
		return nil, err
	}
	list, agents, err := q.index.Leaders(ctx, f)
	if err != nil {
		return nil, renameCursor(err)
	}
	out := &connection[leaderNode, []wire.AsOf]{[]leaderNode{}, pageInfo{list.Next != nil, list.Next}, list.AsOf}
	for i, n := range newNodes(q.index, agents, answers.Latest(), true) {
		l := list.Items[i]
		out.Nodes = append(out.Nodes, leaderNode{l.Rank, l.Value, l.Growth, n})
	}
	return out, nil
}

// chainsOf returns the chains of an argument, nil for all.
func chainsOf(ids *[]wire.Long) (chains []uint64) {
	if ids == nil {
		return nil
	}
	for _, id := range *ids {
		chains = append(chains, uint64(max(id, 0)))
	}
	return chains
}
