package standard

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"repute"
	"repute/orchestrator/transaction"
	"repute/policy"
)

// Terms are the conditions of a task.
type Terms struct {
	Budget      policy.Bounds    `json:"budget"`
	Threshold   policy.Threshold `json:"threshold"`
	ValueAtRisk string           `json:"valueAtRisk"` // wei, decimal
	Tags        []string         `json:"tags,omitempty"`
}

// Request asks for a task.
type Request struct {
	Goal        string          `json:"goal"`
	Input       json.RawMessage `json:"input,omitempty"`
	Coordinator string          `json:"coordinatorSlug"`
	Terms
	// Key makes asking twice one task, at most 128 characters; empty: each asking is another.
	Key string `json:"idempotencyKey,omitempty"`
	By  string `json:"-"`
}

// Bounds of requests: of the goal in characters, of the input in bytes, and of the number of
// tags.
const (
	maxGoal  = 8 << 10
	MaxInput = 256 << 10
	maxTags  = 16
)

// Check refuses a request that cannot be meant. The error is repute.ErrInvalid and names
// the field.
func (r *Request) Check() error {
	switch {
	case strings.TrimSpace(r.Goal) == "":
		return repute.Invalid("goal", "is empty", "say what to do")
	case utf8.RuneCountInString(r.Goal) > maxGoal:
		return repute.Invalid("goal", fmt.Sprintf("has %d characters", utf8.RuneCountInString(r.Goal)),
			fmt.Sprintf("at most %d", maxGoal))
	case len(r.Input) > MaxInput:
		return repute.Invalid("input", fmt.Sprintf("has %d bytes", len(r.Input)), fmt.Sprintf("at most %d", MaxInput))
	case r.Coordinator == "":
		return repute.Invalid("coordinatorSlug", "is missing", "the slug of an agent")
	case !slugForm.MatchString(r.Coordinator) || len(r.Coordinator) > 64:
		return repute.Invalid("coordinatorSlug", fmt.Sprintf("%.80q is no slug", r.Coordinator),
			"lower-case words joined by hyphens")
	case utf8.RuneCountInString(r.Key) > 128:
		return repute.Invalid("idempotencyKey", fmt.Sprintf("has %d characters", utf8.RuneCountInString(r.Key)),
			"at most 128")
	case len(r.Tags) > maxTags || len(strings.Join(r.Tags, "")) > 1024:
		return repute.Invalid("tags", "are too many or too long", fmt.Sprintf("at most %d with 1024 bytes", maxTags))
	}
	if len(r.Input) > 0 {
		if err := repute.CheckJSON("input", r.Input); err != nil {
			return err
		}
	}
	if _, err := transaction.ParseAmount(r.ValueAtRisk); err != nil {
		return repute.Invalid("valueAtRisk", err.Error(), "decimal digits, in wei")
	}
	if err := r.Budget.Check(); err != nil {
		return err
	}
	return r.Threshold.Check("threshold")
}

// Limits are those of a task's runs: what was asked for, else OpenFi's defaults.
func (t Terms) Limits() repute.Limits {
	return LimitsOf(t.Budget.Or(policy.DefaultBudget()))
}

// LimitsOf converts a budget into the form that is stored.
func LimitsOf(b policy.Budget) repute.Limits {
	cost, _ := repute.ParseDollars("maxCostUsd", b.CostUSD) // checked with the request, or empty: no limit
	return repute.Limits{Steps: int(b.Steps), ToolCalls: int(b.ToolCalls), Writes: int(b.OnchainWrites),
		Runtime: time.Duration(b.RuntimeMS) * time.Millisecond, GasWei: b.GasWei, Tokens: b.Tokens, Cost: cost}
}

// BudgetOf converts stored limits into the policy's form.
func BudgetOf(l repute.Limits) policy.Budget {
	b := policy.Budget{Steps: int64(l.Steps), ToolCalls: int64(l.ToolCalls), RuntimeMS: l.Runtime.Milliseconds(),
		OnchainWrites: int64(l.Writes), GasWei: l.GasWei, Tokens: l.Tokens}
	if l.Cost > 0 {
		b.CostUSD = l.Cost.String()
	}
	return b
}
