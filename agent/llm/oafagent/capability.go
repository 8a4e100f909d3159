package oafagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent/capability"
	"repute/agent/handler"
	"repute/agent/llm"
)

// Capability is an agent as the work behind a capability of the agent runtime. The input is the message, and the
// answer is the model's text: as it is where it is JSON, else as the member text of an object. Nobody can be asked
// for a confirmation, and there are no other agents to delegate to.
type Capability struct {
	Agent *Agent
	// Budget bounds one call; the agent's own file may set a lower one.
	Budget llm.Budget
}

// Run implements agent.Handler.
func (c *Capability) Run(ctx context.Context, call capability.Call) (json.RawMessage, error) {
	own, err := c.Agent.settings.Budget()
	if err != nil {
		return nil, fmt.Errorf("%w: the agent's own budget cannot be read", handler.ErrFailed)
	}
	meter := &llm.Meter{Budget: llm.Budget{Tokens: lower(c.Budget.Tokens, own.Tokens), Cost: lower(c.Budget.Cost,
		own.Cost)},
		Price: c.Agent.Price}
	scope, session := sessionOf(&call)
	answer, err := c.Agent.Run(ctx, Session{ID: session, Scope: scope, Ledger: meter}, string(call.Input))
	used, cost := meter.Used()
	c.Agent.o.Log.InfoContext(ctx, "agent answered", "agent", c.Agent.def.ID(), "capability", call.Capability,
		"requestId", call.RequestID, "turns", answer.Turns, "toolCalls", answer.ToolCalls, "refusedCalls",
		answer.Refused,
		"tokens", used.Total(), "costUsd", cost.String(), "error", err)
	if err != nil {
		return nil, failure(ctx, err)
	}
	if text := strings.TrimSpace(answer.Text); json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return json.Marshal(map[string]string{"text": answer.Text})
}

// lower is the lower of two bounds, of which 0 is none.
func lower[T ~int64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// sessionOf returns the sessions of the caller, and the one of the call. A client whose address is not proven has
// a session for each call, so that nobody reads what others told the agent.
func sessionOf(call *capability.Call) (scope, session string) {
	if call.Client == (common.Address{}) {
		return "request/" + call.RequestID, "request/" + call.RequestID
	}
	scope = call.Client.Hex() + "/"
	return scope, scope + SessionName(call.Input)
}

// SessionName returns the member session of an input, the name of a conversation that may be continued; empty where
// there is none, or a long one.
func SessionName(input json.RawMessage) string {
	var in struct {
		Session string `json:"session"`
	}
	if json.Unmarshal(input, &in) != nil || len(in.Session) > 128 {
		return ""
	}
	return in.Session
}

// failure is the error of a handler for one of a conversation.
func failure(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return handler.ErrTimeout
	case ctx.Err() != nil:
		return fmt.Errorf("the run was ended: %w", context.Cause(ctx))
	case errors.Is(err, repute.ErrUnavailable):
		return fmt.Errorf("%w: the model or a server of the agent cannot be reached", repute.ErrUnavailable)
	case errors.Is(err, llm.ErrCut):
		return fmt.Errorf("%w: the model's answer is not complete, because its tokens were used up", handler.ErrFailed)
	case errors.Is(err, repute.ErrLimited):
		return fmt.Errorf("%w: the agent used up its bounds", handler.ErrFailed)
	}
	return handler.ErrFailed
}
