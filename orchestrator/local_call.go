package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/transaction"
	"repute/policy"
	"repute/store/rundb"
)

// Amount is what a call of a language model uses.
type Amount struct {
	Tokens int64
	Cost   repute.Micros
}

// LocalCall is a call that a module of this binary makes itself: of a language model, or of a tool that the
// module has.
type LocalCall struct {
	Kind         repute.CallKind // repute.CallModel or repute.CallTool
	Ref, Summary string
	// Identity are the bytes by which the call is found again after a crash; another identity is another call.
	Identity []byte
	// Request is shown in the receipt.
	Request json.RawMessage
	// Most is what the call can use. It is taken from the budget before the call, and corrected after it.
	Most Amount
	// Once says that the call may have an effect each time that it is made: one that was begun before a crash,
	// and whose end is unknown, is made again only if a person says so.
	Once bool
}

// ErrUncertain is returned by the function of a call of Once that failed, and may have had its effect. A retry of the
// task does not make such a call again.
var ErrUncertain = errors.New("it is unknown whether the call had its effect")

// Local makes a call of the module's own, once: it counts as a tool call, is charged and journaled before it
// is made, and its answer comes from the journal where it was made before. repute.ErrLimited: the budget is
// used up; *ApprovalError: a person must say whether a call of Once is made again. do returns what the call
// used, also with an error.
func (c *Context) Local(ctx context.Context, l LocalCall,
	do func(context.Context, string) (json.RawMessage, Amount, error)) (json.RawMessage, error) {
	if l.Kind != repute.CallModel && l.Kind != repute.CallTool {
		return nil, repute.Invalid("kind", fmt.Sprintf("%q is no call of a module", l.Kind), "model or tool")
	}
	r := repute.Receipt{Kind: l.Kind, Ref: l.Ref, Summary: l.Summary, Request: l.Request, Domain: "runtime"}
	made := charged{r, l.Identity, l.Most, l.Once}
	return c.charged(ctx, made, func(ctx context.Context, key string) (json.RawMessage, Amount, error) {
		answer, used, err := do(ctx, key)
		if err == nil {
			err = readable("answer", answer)
		}
		return answer, used, err
	})
}

// Text publishes a part of the text that a model writes, as an event of the run. A part that cannot be stored is
// lost, because the whole text is stored with the call. turn tells the parts of one answer of the model from those
// of the next.
func (c *Context) Text(ctx context.Context, turn int, text string) {
	if c.w.databaseFailed() != nil {
		return
	}
	if err := rundb.AddModelText(ctx, c.w.e.db, c.w.lease, c.RunID, c.step, turn, text); err != nil {
		c.w.log.Debug("a part of a model's text was not stored", "error", err)
	}
}

// Confirm asks a person about an action of the agent, and returns nil once it is approved. name identifies
// the action within the step, and text describes it. Until it is answered the run waits, with an
// *ApprovalError; a refusal is a *transaction.DeniedError. It is asked in Execute alone.
func (c *Context) Confirm(ctx context.Context, name, text string) error {
	if c.phase != repute.PhaseExecute {
		return transaction.Refuse("phase", "actions are confirmed in Execute alone, not in %s", c.phase)
	}
	p := c.w.e.o.Policy()
	d := policy.Decision{Effect: policy.RequireApproval, Reasons: []policy.Reason{{ID: "agent.requireConfirmation",
		Effect: policy.RequireApproval, Text: journal.Shorten(text)}}}
	stored, err := c.w.stored(ctx, p, rundb.Decision{Phase: repute.PhaseExecute, Kind: repute.DecisionCall,
		Subject: fmt.Sprintf("%s/confirm/%s", c.step, name),
		Input:   journal.JSON(map[string]any{"action": name, "text": text})}, d)
	if err != nil {
		return err
	}
	return c.w.approved(ctx, stored, d, nil)
}
