package policy

import (
	"cmp"
	"fmt"
	"strconv"

	"repute"
)

// DefaultBudget is OpenFi's (agent standard, compute budget). Gas has no default.
func DefaultBudget() Budget {
	return Budget{Steps: 10, ToolCalls: 50, RuntimeMS: 300_000, OnchainWrites: 5}
}

// Check refuses a budget that no run can have. The error is repute.ErrInvalid.
func (b Budget) Check() error {
	for _, c := range b.counts() {
		if c.value < 0 {
			return repute.Invalid(c.name, fmt.Sprintf("%d is negative", c.value), "0 or more")
		}
	}
	if b.GasWei == "" {
		return nil
	}
	if _, err := amountOf(b.GasWei); err != nil {
		return repute.Invalid("maxGasWei", fmt.Sprintf("%.40q is no amount", b.GasWei), "decimal digits alone, in wei, e.g. 1000000000000000")
	}
	return nil
}

type count struct {
	name  string
	value int64
}

func (b Budget) counts() []count {
	return []count{{"maxSteps", b.Steps}, {"maxToolCalls", b.ToolCalls}, {"maxRuntimeMs", b.RuntimeMS}, {"maxOnchainWrites", b.OnchainWrites}}
}

// Or replaces zero values.
func (b Budget) Or(other Budget) Budget {
	return Budget{Steps: cmp.Or(b.Steps, other.Steps), ToolCalls: cmp.Or(b.ToolCalls, other.ToolCalls),
		RuntimeMS: cmp.Or(b.RuntimeMS, other.RuntimeMS), OnchainWrites: cmp.Or(b.OnchainWrites, other.OnchainWrites),
		GasWei: cmp.Or(b.GasWei, other.GasWei)}
}

// Budget is what a task gets that asked for a budget: what it left open is OpenFi's default,
// or the policy's limit where that is less. What it asked for stays, and Decide denies what
// is too much.
func (p *Policy) Budget(asked Budget) Budget {
	most, usual := p.file.Limits, DefaultBudget()
	return asked.Or(Budget{Steps: min(usual.Steps, most.Steps), ToolCalls: min(usual.ToolCalls, most.ToolCalls),
		RuntimeMS: min(usual.RuntimeMS, most.RuntimeMS), OnchainWrites: min(usual.OnchainWrites, most.OnchainWrites), GasWei: most.GasWei})
}

func (b *Budget) complete() error {
	*b = b.Or(DefaultBudget())
	return b.Check()
}

// exceeded lists what of a budget, or of a plan, is beyond the limits.
func (b Budget) exceeded(asked Budget, plan Plan) (out []Reason) {
	if err := asked.Check(); err != nil {
		return []Reason{{ID: "limit.budget", Effect: Deny, Text: err.Error()}}
	}
	have := asked.counts()
	for i, limit := range b.counts() {
		if have[i].value > limit.value {
			out = append(out, over(limit.name, strconv.FormatInt(have[i].value, 10), strconv.FormatInt(limit.value, 10)))
		}
	}
	if most := min(asked.Steps, b.Steps); plan.Steps > most {
		out = append(out, over("planSteps", strconv.FormatInt(plan.Steps, 10), strconv.FormatInt(most, 10)))
	}
	return append(out, b.gasExceeded(asked.GasWei)...)
}

// gasExceeded: where gas is limited a task must name its own bound.
func (b Budget) gasExceeded(asked string) []Reason {
	switch {
	case b.GasWei == "":
		return nil
	case asked == "":
		return []Reason{over("maxGasWei", "no bound", b.GasWei)}
	}
	have, err := amountOf(asked)
	limit, err2 := amountOf(b.GasWei)
	if err != nil || err2 != nil || have.Cmp(limit) > 0 {
		return []Reason{over("maxGasWei", asked, b.GasWei)}
	}
	return nil
}

func over(field, have, need string) Reason {
	fix := fmt.Sprintf("give budget.%s of at most that", field)
	if field == "planSteps" {
		fix = "plan fewer, or give a larger budget.maxSteps"
	}
	return Reason{ID: "limit." + field, Effect: Deny, Text: fmt.Sprintf("%s is %s, at most %s is allowed: %s", field, have, need, fix), Have: have, Need: need}
}
