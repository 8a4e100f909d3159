package graph

import (
	"context"
	"strings"

	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
)

type ( // decisionArgs are the arguments of Agent.decision.
	decisionArgs struct {
		MinScore    *float64
		Tier        *int32
		Gates       *[]string
		Verified    *bool
		ValueAtRisk *wire.BigInt
	}
)

// Decision says whether the agent may be paid or delegated to.
func (n *agentNode) Decision(ctx context.Context, args decisionArgs) (*wire.Decision, error) {
	q := answers.DecisionQuery{MinScore: httpapi.Real(answers.TextOf(args.MinScore)),
		Tier:        httpapi.Number(answers.TextOf(args.Tier)),
		ValueAtRisk: orEmpty(args.ValueAtRisk)}
	if args.Gates != nil {
		q.Gates = strings.Join(*args.Gates, ",")
	}
	if isTrue(args.Verified) {
		q.Verified = "1"
	}
	d, err := q.ReadDemand()
	if err != nil {
		return nil, err
	}
	score := n.stored
	if n.group.list { // without results, which hold the gates
		if score, err = n.group.scoreOf(ctx, n.key); err != nil {
			return nil, err
		}
	}
	w, err := n.group.index.Decide(score, d)
	return &w, err
}
