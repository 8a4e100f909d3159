package graph

import (
	"context"
	"errors"
	"strconv"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/api/wire/provenance"
	"repute/internal/httpapi"
	"repute/store/query"
)

// queryResolver resolves the root fields.
type queryResolver struct {
	index   *answers.Index
	options Options
	attacks *provenance.AttackReport
}

// connection is a page of a list, and the views of the chains that it is read in: that of the chain of one agent, one
// for each chain that was asked, or none for what belongs to no chain.
type connection[N any, A *wire.AsOf | []wire.AsOf | struct{}] struct {
	Nodes    []N
	PageInfo pageInfo
	AsOf     A
}

// pageInfo is where a connection stopped.
type pageInfo struct {
	HasNextPage bool
	EndCursor   *string
}

// pageInfoOf returns where a page with such a cursor of the next one stopped; "" is the last page.
func pageInfoOf(next string) pageInfo { return pageInfo{next != "", wire.OrNull(next)} }

// agentArgs are the arguments of Query.agent.
type agentArgs struct {
	ID      wire.ID
	ChainID *wire.Long
	At      *string
}

// Agent reads one agent, nil when it is unknown.
func (q *queryResolver) Agent(ctx context.Context, args agentArgs) (*agentNode, error) {
	chain := ""
	if args.ChainID != nil {
		chain = strconv.FormatInt(int64(*args.ChainID), 10)
	}
	ref, err := answers.ParseAgent(string(args.ID), chain)
	if err != nil {
		return nil, err
	}
	at, err := answers.ParseAt(orEmpty(args.At))
	if err != nil {
		return nil, err
	}
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	id, err := q.index.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	agent, asOf, err := query.Agent(ctx, q.index.DB, id, at)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	node := newNodes(q.index, []repute.Agent{agent}, at, false)[0]
	node.AsOf, node.view = new(wire.EncodeAsOf(asOf)), asOf
	return node, nil
}

// AgentsByID reads many agents at once, in the order asked for. Unknown agents are null at their places, and an id that
// is given twice is the same node twice.
func (q *queryResolver) AgentsByID(ctx context.Context, args struct{ IDs []wire.ID }) ([]*agentNode, error) {
	if len(args.IDs) > httpapi.MaxPage {
		return nil, repute.Invalid("ids", "too many", "at most "+strconv.Itoa(httpapi.MaxPage))
	}
	if err := charge(ctx, readCost+len(args.IDs)); err != nil {
		return nil, err
	}
	ids, err := q.resolveAll(ctx, args.IDs)
	if err != nil {
		return nil, err
	}
	found, err := query.AgentsByID(ctx, q.index.DB, ids)
	if err != nil {
		return nil, err
	}
	var agents []repute.Agent
	for _, id := range distinct(ids) {
		if agent, known := found[id]; known {
			agents = append(agents, agent)
		}
	}
	byID := make(map[wire.ID]*agentNode, len(agents))
	for _, node := range newNodes(q.index, agents, answers.Latest(), true) {
		byID[node.Agent.ID] = node
	}
	return wire.Each(ids, func(id repute.AgentID) *agentNode { return byID[wire.ID(id.String())] }), nil
}

// resolveAll completes ids. The chain of an id decides its registry, so one
// lookup per chain serves all.
func (q *queryResolver) resolveAll(ctx context.Context, ids []wire.ID) ([]repute.AgentID, error) {
	out := make([]repute.AgentID, 0, len(ids))
	known := map[uint64]repute.AgentID{}
	for _, id := range ids {
		ref, err := answers.ParseAgent(string(id), "")
		if err != nil {
			return nil, err
		}
		full, seen := known[ref.ChainID]
		if !seen || (ref.Registry != nil && *ref.Registry != full.Registry) {
			if full, err = q.index.Resolve(ctx, ref); err != nil {
				return nil, err
			}
			known[ref.ChainID] = full
		}
		full.TokenID = ref.TokenID
		out = append(out, full)
	}
	return out, nil
}

// Chains lists the chains.
func (q *queryResolver) Chains(ctx context.Context) ([]wire.Chain, error) {
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	chains, err := query.Chains(ctx, q.index.DB)
	return wire.Each(chains, wire.EncodeChain), err
}

// Status is the index as a whole.
func (q *queryResolver) Status(ctx context.Context) (*wire.StatusAnswer, error) {
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	chains, err := query.Chains(ctx, q.index.DB)
	if err != nil {
		return nil, err
	}
	status := q.index.StatusOf(chains)
	return &status, nil
}

// orEmpty returns an optional argument as text, "" where it is absent or null: the parsers of parameters take both as
// the default.
func orEmpty[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

// distinct returns ids once each, in the order of their first places.
func distinct(ids []repute.AgentID) []repute.AgentID {
	seen := map[repute.AgentID]bool{}
	var out []repute.AgentID
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// renameCursor calls the parameter by its GraphQL name. The store knows the name of REST, which is cursor.
func renameCursor(err error) error {
	if input, isInput := errors.AsType[*repute.InputError](err); isInput && input.Field == "cursor" {
		return repute.Invalid("after", input.Reason, input.Hint)
	}
	return err
}
