package intentcall

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"repute"
	"repute/orchestrator/outbound"
)

// Planner plans intents for agents of the orchestrator. It implements orchestrator.IntentPlanner.
type Planner struct{ From Manifests }

// PlanIntent reads the manifest of an intent's domain and checks parameters and bound. Errors are those of Find,
// Request and Limit.
func (p Planner) PlanIntent(ctx context.Context, q outbound.IntentRequest) (out outbound.IntentPlan, err error) {
	target, err := ParseTarget(q.Intent)
	if err != nil {
		return out, err
	}
	var most *repute.Micros
	if q.Max != "" {
		bound, err := repute.ParseDollars("max", q.Max)
		if err != nil {
			return out, err
		}
		most = &bound
	}
	plan, err := Find(ctx, p.From, target)
	if err != nil {
		return out, err
	}
	if plan.Semantic() {
		out.Instructions = plan.instructions(q.Params)
		return out, plan.Intent.CheckArguments(q.Params)
	}
	request, err := plan.Request(q.Params)
	if err != nil {
		return out, err
	}
	limit, err := plan.Limit(most)
	if err != nil {
		return out, err
	}
	out.Request = outbound.HTTPRequest{Method: request.Method, URL: request.URL, Body: request.Body}
	if request.Type != "" {
		out.Request.Header = http.Header{"Content-Type": {request.Type}}
	}
	if most != nil {
		out.Max = limit.String()
	}
	return out, nil
}

// instructions are what the intent says in words.
func (p *Plan) instructions(params map[string]json.RawMessage) *outbound.Instructions {
	return &outbound.Instructions{Intent: p.Intent.Name, Origin: p.Origin,
		Description: strings.TrimSpace(p.Intent.Description), Params: params}
}
