package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/outbound"
)

// IntentPlanner reads what an intent of a domain takes (package intentcall). It sends nothing to the intent's endpoint,
// and its request MUST go to the domain itself. An intent with a price MUST have no plan without a bound.
type IntentPlanner interface {
	PlanIntent(ctx context.Context, q outbound.IntentRequest) (outbound.IntentPlan, error)
}

// Intent acts on an intent of a domain's agent.json: it checks the parameters against the manifest, and calls the
// endpoint, which MUST be of the domain itself. With Max the answer is paid for as Pay does, within the payments of the
// policy and the price of the manifest. An intent without an endpoint is not acted on: its instructions are returned.
// The manifest is read once for a call, however often the step runs, so that a call that was paid for stays the same.
func (c *Context) Intent(ctx context.Context, q outbound.IntentRequest) (out outbound.IntentResponse, err error) {
	plan, err := c.planIntent(ctx, q)
	switch {
	case err != nil:
		return out, err
	case plan.Instructions != nil:
		out.Instructions = plan.Instructions
		return out, nil
	case plan.Max == "":
		out.PaidResponse, err = c.unpaid(ctx, plan.Request)
	default:
		var paid outbound.PaidResponse
		paid, err = c.Pay(ctx, outbound.PaidRequest{HTTPRequest: plan.Request, Max: plan.Max, Key: q.Key})
		out.PaidResponse = &paid
	}
	if err != nil {
		return outbound.IntentResponse{}, err
	}
	return out, endsHere(out.PaidResponse)
}

// endsHere refuses a redirect, which would leave what the manifest names. A redirect that was paid for is an answer.
func endsHere(a *outbound.PaidResponse) error {
	if a.Status >= 300 && a.Status < 400 && a.Payment == nil {
		return repute.Invalid("endpoint", fmt.Sprintf("redirects with status %d", a.Status),
			"an endpoint that answers itself: no redirect is followed")
	}
	return nil
}

// planIntent reads the manifest of an intent. The plan is journaled.
func (c *Context) planIntent(ctx context.Context, q outbound.IntentRequest) (plan outbound.IntentPlan, err error) {
	if c.w.e.o.Intents == nil {
		return plan, &repute.MissingError{What: "intents", Why: "are not configured"}
	}
	asked := journal.JSON(q)
	if err := repute.CheckJSON("intent", asked); err != nil {
		return plan, err
	}
	_, domain, _ := strings.Cut(q.Intent, "@")
	raw, err := c.call(ctx, repute.Receipt{Kind: repute.CallHTTP, Ref: q.Intent, Domain: domain,
		Summary: "manifest of intent " + q.Intent, Request: asked},
		func(ctx context.Context, _ string) (json.RawMessage, error) {
			plan, err := c.w.e.o.Intents.PlanIntent(ctx, q)
			return journal.JSON(plan), err
		})
	if err != nil {
		return plan, err
	}
	return plan, json.Unmarshal(raw, &plan)
}

// unpaid sends the request of an intent that costs nothing. A demand for payment is refused, and no redirect is
// followed.
func (c *Context) unpaid(ctx context.Context, q outbound.HTTPRequest) (*outbound.PaidResponse, error) {
	shown, err := shownURL(q.URL)
	if err != nil {
		return nil, err
	}
	raw, err := c.call(ctx, requested(repute.CallHTTP, &q, shown),
		func(ctx context.Context, key string) (json.RawMessage, error) {
			answer, err := q.Send(ctx, outbound.Direct(c.w.e.o.HTTP), key)
			if err == nil && answer.Status == http.StatusPaymentRequired {
				err = repute.Invalid("max", "is missing, and the service demands payment for an intent without a price",
					"the most that the call may cost, in dollars")
			}
			return journal.JSON(answer), err
		})
	if err != nil {
		return nil, err
	}
	var out outbound.PaidResponse
	return &out, json.Unmarshal(raw, &out.HTTPResponse)
}
