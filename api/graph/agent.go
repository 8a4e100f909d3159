package graph

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	graphql "github.com/graph-gophers/graphql-go"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/docdb"
	"repute/store/query"
)

// agentNode is an agent in an answer. It knows the agents it was read with, so
// that what hangs below all of them is read at once. It is made by newNodes; its fields do not change, so that
// resolvers of one query may run at the same time.
type agentNode struct {
	wire.Agent
	AsOf *wire.AsOf

	key    repute.AgentID
	stored repute.Score // in a list without its result
	view   repute.AsOf  // what stored is true at; unknown in a list
	group  *cohort
}

// newNodes makes resolvers that load what several agents of one answer need with one statement. With list, what hangs
// below the agents is read for all of them even if the query asks for it below one alone, as GraphQL gives all elements
// of a list the same selection.
func newNodes(x *answers.Index, agents []repute.Agent, at repute.At, list bool) []*agentNode {
	group := &cohort{index: x, at: at, list: list}
	return wire.Each(agents, func(agent repute.Agent) *agentNode {
		group.ids = append(group.ids, agent.ID)
		return &agentNode{Agent: wire.EncodeAgentAt(agent, at), key: agent.ID, stored: agent.Score, group: group}
	})
}

// DomainProofs tells of the domains of the agent's endpoints.
func (n *agentNode) DomainProofs(ctx context.Context) ([]wire.DomainProof, error) {
	proofs, err := n.group.proofsOf(ctx, n.key)
	return wire.Each(proofs, wire.EncodeDomainProof), err
}

// LinkedAgents are agents whose documents and this one's name each other. It is one statement for each agent and is
// charged so.
func (n *agentNode) LinkedAgents(ctx context.Context) ([]wire.LinkedAgent, error) {
	if n.group.at != answers.Latest() {
		return []wire.LinkedAgent{}, nil
	}
	if err := charge(ctx, readCost+httpapi.MaxPage); err != nil {
		return nil, err
	}
	linked, err := docdb.LinkedAgents(ctx, n.group.index.DB, n.key)
	return wire.Each(linked, wire.EncodeLinked), err
}

// feedbackArgs are the arguments of Agent.feedback.
type feedbackArgs struct {
	First          *int32
	After          *string
	Clients        *[]wire.Address
	Tag1, Tag2     *string
	IncludeRevoked *bool
}

// selects reports whether the arguments ask for other ratings than the newest live ones. First is none of them: it is a
// part of the key by which pages are shared.
func (a feedbackArgs) selects() bool {
	return a.After != nil || a.Clients != nil || a.Tag1 != nil || a.Tag2 != nil || isTrue(a.IncludeRevoked)
}

// feedbackNode is a rating with its way back to the agent.
type feedbackNode struct {
	wire.Feedback
	agent *agentNode
}

// ID is the agent's id with client and index.
func (f *feedbackNode) ID() wire.ID {
	return wire.ID(fmt.Sprintf("%s:%s:%d", f.Feedback.Agent, f.Client, f.Index))
}

// Agent is who was rated.
func (f *feedbackNode) Agent() *agentNode { return f.agent }

// Feedback lists an agent's ratings.
func (n *agentNode) Feedback(ctx context.Context, args feedbackArgs) (*connection[*feedbackNode, *wire.AsOf], error) {
	first, err := pageSize(args.First)
	if err != nil {
		return nil, err
	}
	if n.group.list && !args.selects() {
		rows, more, err := n.group.feedbackOf(ctx, n.key, first)
		if err != nil {
			return nil, err
		}
		return &connection[*feedbackNode, *wire.AsOf]{Nodes: n.feedbackNodes(rows),
			PageInfo: pageInfo{HasNextPage: more}}, nil
	}
	clients, err := addressesOf("clients", args.Clients)
	if err != nil {
		return nil, err
	}
	if err := charge(ctx, readCost+first); err != nil {
		return nil, err
	}
	page, err := query.Feedback(ctx, n.group.index.DB, n.key, query.FeedbackFilter{
		Clients: clients, Tag1: args.Tag1, Tag2: args.Tag2, IncludeRevoked: isTrue(args.IncludeRevoked),
		After: orEmpty(args.After), Limit: first, At: n.group.at,
	})
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[*feedbackNode, *wire.AsOf]{n.feedbackNodes(page.Items), pageInfoOf(page.Next),
		firstAsOf(page.AsOf)}, nil
}

// feedbackNodes returns ratings of the agent.
func (n *agentNode) feedbackNodes(rows []repute.Feedback) []*feedbackNode {
	return wire.Each(rows, func(f repute.Feedback) *feedbackNode { return &feedbackNode{wire.EncodeFeedback(f), n} })
}

// validationNode is a validation with its way back to the agent.
type validationNode struct {
	wire.Validation
	agent *agentNode
}

// ID is unique over all chains and contracts.
func (v *validationNode) ID() wire.ID {
	return wire.ID(fmt.Sprintf("%d:%s:%s", v.ChainID, v.Contract, v.RequestHash))
}

// Agent is whose work was checked.
func (v *validationNode) Agent() *agentNode { return v.agent }

// validationArgs are the arguments of Agent.validations.
type validationArgs struct {
	First       *int32
	After       *string
	TrustedOnly *bool
}

// Validations lists an agent's validations.
func (n *agentNode) Validations(ctx context.Context, args validationArgs) (*connection[*validationNode, *wire.AsOf],
	error) {
	first, err := pageSize(args.First)
	if err != nil {
		return nil, err
	}
	if n.group.list && args.After == nil && !isTrue(args.TrustedOnly) {
		rows, more, err := n.group.validationsOf(ctx, n.key, first)
		if err != nil {
			return nil, err
		}
		return &connection[*validationNode, *wire.AsOf]{Nodes: n.validationNodes(rows),
			PageInfo: pageInfo{HasNextPage: more}}, nil
	}
	if err := charge(ctx, readCost+first); err != nil {
		return nil, err
	}
	page, err := query.Validations(ctx, n.group.index.DB, n.key, query.ValidationFilter{
		TrustedOnly: isTrue(args.TrustedOnly), After: orEmpty(args.After), Limit: first, At: n.group.at,
	})
	if err != nil {
		return nil, renameCursor(err)
	}
	return &connection[*validationNode, *wire.AsOf]{n.validationNodes(page.Items), pageInfoOf(page.Next),
		firstAsOf(page.AsOf)}, nil
}

// validationNodes returns validations of the agent.
func (n *agentNode) validationNodes(rows []repute.Validation) []*validationNode {
	return wire.Each(rows,
		func(v repute.Validation) *validationNode { return &validationNode{wire.EncodeValidation(v), n} })
}

// reputationArgs are the arguments of Agent.reputation.
type reputationArgs struct {
	Clients    *[]wire.Address
	Tag1, Tag2 *string
	Roots      *string
	Sources    *string
}

// reputationNode is an agent's reputation; in a list, of what was asked for.
type reputationNode struct {
	wire.Standing
	Summary      wire.Summary
	AsOf         *wire.AsOf
	Independence wire.Independence
	Scored       *wire.Scored
	Tags         []wire.TagSummary
	TagsTotal    wire.Long

	agent *agentNode
}

// OpenFi are OpenFi's checks of who the agent is.
func (r *reputationNode) OpenFi(ctx context.Context) (*wire.OpenFi, error) {
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	return r.agent.group.index.OpenFi(ctx, r.agent.key, r.agent.group.at)
}

// Reputation gives the score and the unweighted views. In a list without arguments, only the parts that the query
// selects are read. For a single agent it returns the score that was read with the agent, so that an answer never
// has two different scores.
func (n *agentNode) Reputation(ctx context.Context, args reputationArgs) (*reputationNode, error) {
	if n.group.list && args == (reputationArgs{}) {
		r, err := n.group.reputationOf(ctx, n.key)
		if err != nil {
			return nil, err
		}
		scored := wire.Scored{Standing: wire.EncodeStanding(r.Score)}
		if graphql.HasSelectedField(ctx, "scored") { // else the result was not read
			scored, err = wire.EncodeScored(r.Score)
		}
		return n.reputationNode(r, scored, nil), err
	}
	clients, err := addressesOf("clients", args.Clients)
	if err != nil {
		return nil, err
	}
	by, err := n.rootsOf(args.Roots, args.Sources)
	if err != nil {
		return nil, err
	}
	if err := charge(ctx, readCost); err != nil {
		return nil, err
	}
	r, err := query.ReadReputation(ctx, n.group.index.DB, n.key, query.ReputationQuery{
		Clients: clients, Tag1: orEmpty(args.Tag1), Tag2: orEmpty(args.Tag2), At: n.group.at,
	})
	if err != nil {
		return nil, err
	}
	if !n.group.list { // one query shows one score, whatever was stored since
		r.Score = n.stored
	}
	scored, err := n.group.index.Scored(ctx, n.key, r.Score, by)
	return n.reputationNode(r, scored, new(wire.EncodeAsOf(r.AsOf))), err
}

// reputationNode returns a reputation with a score, which may differ from that of r: it is by the caller's roots, or
// was read when the query began. asOf is nil in a list, which has one asOf for all agents.
func (n *agentNode) reputationNode(r query.Reputation, scored wire.Scored, asOf *wire.AsOf) *reputationNode {
	return &reputationNode{
		Standing: scored.Standing, Scored: &scored, agent: n, AsOf: asOf, Summary: wire.EncodeSummary(r.Summary),
		Independence: wire.EncodeIndependence(r.Independence), Tags: wire.Each(r.Tags, n.group.index.TagSummary),
		TagsTotal: wire.Long(r.Total),
	}
}

// explainArgs are the arguments of Agent.explain.
type explainArgs struct {
	Without *[]wire.Address
	Limit   *int32
	Roots   *string
	Sources *string
}

// rootsOf are the caller's, empty where the argument is absent. The agent's at is an argument of another field, which
// is why the error names it.
func (n *agentNode) rootsOf(arg, sources *string) (by answers.OwnRoots, err error) {
	switch {
	case arg == nil:
		by.Sources = orEmpty(sources)
		return by, by.Check(false, n.group.at)
	case *arg == "":
		return by, answers.NoRoots()
	case n.group.at != answers.Latest():
		return by, repute.Invalid("roots", "score at latest only", "ask agent without at, or leave out roots")
	}
	by = answers.OwnRoots{Roots: *arg, Sources: orEmpty(sources)}
	return by, by.Check(false, n.group.at)
}

// Explain tells what the agent's score is made of. The caller's limit on walks applies besides the cost.
func (n *agentNode) Explain(ctx context.Context, args explainArgs) (*wire.ExplainAnswer, error) {
	p := answers.ExplainPlan{At: n.group.at, Limit: answers.DefaultListed}
	if !n.group.list {
		p.Stored, p.AsOf = &n.stored, n.view
	}
	if args.Limit != nil {
		p.Limit = int(*args.Limit)
	}
	if p.Limit < 1 || p.Limit > answers.MaxListed {
		return nil, repute.Invalid("limit", "out of range", fmt.Sprintf("a number from 1 to %d", answers.MaxListed))
	}
	var err error
	if p.By, err = n.rootsOf(args.Roots, args.Sources); err != nil {
		return nil, err
	}
	if p.Without, err = addressesOf("without", args.Without); err != nil {
		return nil, err
	}
	if len(p.Without) > answers.MaxWithout {
		return nil, repute.Invalid("without", "too many addresses", fmt.Sprintf("at most %d", answers.MaxWithout))
	}
	if err := charge(ctx, explainCost); err != nil {
		return nil, err
	}
	answer, err := n.group.index.Explanation(ctx, n.key, p)
	return &answer, err
}

// isTrue reports whether an optional argument is given and true.
func isTrue(b *bool) bool { return b != nil && *b }

// firstAsOf returns the first view, nil for an empty list.
func firstAsOf(all []repute.AsOf) *wire.AsOf {
	if len(all) == 0 {
		return nil
	}
	return new(wire.EncodeAsOf(all[0]))
}

// addressesOf reads an optional list of addresses within the bound of a parameter of REST; nil where it is absent,
// which differs from an empty list.
func addressesOf(field string, list *[]wire.Address) ([]common.Address, error) {
	if list == nil {
		return nil, nil
	}
	if len(*list) > answers.MaxClients {
		return nil, repute.Invalid(field, "too many addresses", fmt.Sprintf("at most %d", answers.MaxClients))
	}
	out := make([]common.Address, 0, len(*list))
	for _, s := range *list {
		a, err := repute.ParseAddress(field, string(s))
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}
