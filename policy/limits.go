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

// Bounds are a budget as a request, a manifest or a policy states it. A bound that is nil,
// or gas that is empty, is absent and gets a default; a bound of 0 allows none.
type Bounds struct {
	Steps         *int64 `yaml:"maxSteps" json:"maxSteps,omitempty" minimum:"0" maximum:"2147483647" doc:"0 allows none; absent: the default"`
	ToolCalls     *int64 `yaml:"maxToolCalls" json:"maxToolCalls,omitempty" minimum:"0" maximum:"2147483647"`
	RuntimeMS     *int64 `yaml:"maxRuntimeMs" json:"maxRuntimeMs,omitempty" minimum:"0" maximum:"2147483647"`
	OnchainWrites *int64 `yaml:"maxOnchainWrites" json:"maxOnchainWrites,omitempty" minimum:"0" maximum:"2147483647"`
	GasWei        string `yaml:"maxGasWei" json:"maxGasWei,omitempty" pattern:"^[0-9]{1,78}$"`
	// PaymentUSD lowers what a task may pay for answers. Policies bound that by payments.maxTask.
	PaymentUSD string `yaml:"maxPaymentUsd" json:"maxPaymentUsd,omitempty" pattern:"^[0-9]{1,9}([.][0-9]{1,6})?$" doc:"dollars to pay for answers; absent: the policy's, which it cannot raise"`
	// Tokens and CostUSD bound language models; absent: no limit.
	Tokens  *int64 `yaml:"maxTokens" json:"maxTokens,omitempty" minimum:"1" maximum:"2147483647"`
	CostUSD string `yaml:"maxCostUsd" json:"maxCostUsd,omitempty" pattern:"^[0-9]{1,9}([.][0-9]{1,6})?$"`
}

// Or is the budget that has the bounds, and what is absent from another. Nil and "" are absent. It does not check: see
// Check.
func (b Bounds) Or(other Budget) Budget {
	for _, f := range []struct {
		to   *int64
		from *int64
	}{{&other.Steps, b.Steps}, {&other.ToolCalls, b.ToolCalls}, {&other.RuntimeMS, b.RuntimeMS},
		{&other.OnchainWrites, b.OnchainWrites}, {&other.Tokens, b.Tokens}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	other.GasWei, other.CostUSD = cmp.Or(b.GasWei, other.GasWei), cmp.Or(b.CostUSD, other.CostUSD)
	other.PaymentUSD = cmp.Or(b.PaymentUSD, other.PaymentUSD)
	return other
}

// Payment is a budget with the bound of what is paid for answers, which is stored with the task alone.
func (b Bounds) Payment(other Budget) Budget {
	other.PaymentUSD = b.PaymentUSD
	return other
}

// Check refuses bounds that no run can have. The error is repute.ErrInvalid. A bound of 0 tokens or dollars is refused
// although other counts may be 0: in a Budget it would read as no limit.
func (b Bounds) Check() error {
	if b.Tokens != nil && *b.Tokens == 0 {
		return repute.Invalid("maxTokens", "allows no model to be asked", "1 or more, or no bound")
	}
	return b.Or(Budget{}).check()
}

// check refuses a budget that no run can have. The error is repute.ErrInvalid. Amounts of gas are bounded by what the
// EVM can count; PaymentUSD may be 0, which pays for nothing.
func (b Budget) check() error {
	for _, c := range b.counts() {
		if c.value < 0 || c.value > maxBound {
			return repute.Invalid(c.name, fmt.Sprintf("%d is out of range", c.value), fmt.Sprintf("0 to %d", maxBound))
		}
	}
	if b.PaymentUSD != "" {
		if _, err := repute.ParseDollars("maxPaymentUsd", b.PaymentUSD); err != nil {
			return err
		}
	}
	if b.CostUSD != "" {
		if v, err := repute.ParseDollars("maxCostUsd", b.CostUSD); err != nil || v == 0 {
			return cmp.Or(err, repute.Invalid("maxCostUsd", "allows no model to be asked",
				"dollars above 0, or no bound"))
		}
	}
	if b.GasWei == "" {
		return nil
	}
	if v, err := amountOf(b.GasWei); err != nil || v.BitLen() > 256 {
		return repute.Invalid("maxGasWei", fmt.Sprintf("%.40q is no amount", b.GasWei),
			"decimal digits alone, in wei, below 2^256, e.g. 1000000000000000")
	}
	return nil
}

// maxBound is the largest bound that is not gas: they are stored as 32 bit integers.
const maxBound = 1<<31 - 1

// count is one bound with its name in requests.
type count struct {
	name  string
	value int64
}

// counts are the limits of a budget that count something, without those in wei. exceeded compares two of these lists by
// position, so that the order MUST be the same for every budget.
func (b Budget) counts() []count {
	return []count{{"maxSteps", b.Steps}, {"maxToolCalls", b.ToolCalls}, {"maxRuntimeMs", b.RuntimeMS},
		{"maxOnchainWrites", b.OnchainWrites}, {"maxTokens", b.Tokens}}
}

// Budget is what a task gets that asked for bounds: what is absent is OpenFi's default, or
// the policy's limit where that is less. What it asked for stays, and Decide denies what is
// too much.
func (p *Policy) Budget(asked Bounds) Budget {
	most, usual := p.limits, DefaultBudget()
	return asked.Or(Budget{Steps: min(usual.Steps, most.Steps), ToolCalls: min(usual.ToolCalls, most.ToolCalls),
		RuntimeMS: min(usual.RuntimeMS, most.RuntimeMS), OnchainWrites: min(usual.OnchainWrites, most.OnchainWrites),
		GasWei: most.GasWei, Tokens: most.Tokens, CostUSD: most.CostUSD})
}

// exceeded lists what of a budget, or of a plan, is beyond the limits. b are the limits of the policy. A budget that is
// no budget at all gives one reason and is not compared further. The plan is compared with the smaller one of both
// bounds on steps, because the run would stop there.
func (b Budget) exceeded(asked Budget, plan Plan) (out []Reason) {
	if err := asked.check(); err != nil {
		return []Reason{{ID: "limit.budget", Effect: Deny, Text: err.Error()}}
	}
	have := asked.counts()
	for i, limit := range b.counts() {
		if limit.name == "maxTokens" { // 0 is no limit
			out = append(out, bounded(limit.name, tokens(have[i].value), tokens(limit.value), isLarger)...)
		} else if have[i].value > limit.value {
			out = append(out, over(limit.name, strconv.FormatInt(have[i].value, 10),
				strconv.FormatInt(limit.value, 10)))
		}
	}
	if most := min(asked.Steps, b.Steps); plan.Steps > most {
		out = append(out, over("planSteps", strconv.FormatInt(plan.Steps, 10), strconv.FormatInt(most, 10)))
	}
	out = append(out, bounded("maxCostUsd", asked.CostUSD, b.CostUSD, isDearer)...)
	return append(out, bounded("maxGasWei", asked.GasWei, b.GasWei, isLarger)...)
}

// bounded lists what exceeds a bound that the policy has: the task MUST then name its own, which is no larger. Bounds
// are texts, "" for none.
func bounded(field, asked, most string, isMore func(asked, most string) bool) []Reason {
	switch {
	case most == "":
		return nil
	case asked == "":
		return []Reason{over(field, "no bound", most)}
	case isMore(asked, most):
		return []Reason{over(field, asked, most)}
	}
	return nil
}

// tokens writes a number of tokens as a bound, of which 0 is none.
func tokens(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// isDearer reports whether an amount in dollars is above another, or one of them is no amount. Failing to compare
// counts as above.
func isDearer(asked, most string) bool {
	have, err := repute.ParseDollars("maxCostUsd", asked)
	limit, err2 := repute.ParseDollars("maxCostUsd", most)
	return err != nil || err2 != nil || have > limit
}

// isLarger reports whether a whole number is above another, or one of them is none.
func isLarger(asked, most string) bool {
	have, err := amountOf(asked)
	limit, err2 := amountOf(most)
	return err != nil || err2 != nil || have.Cmp(limit) > 0
}

// paymentExceeded: a task lowers what is paid for it, and never raises it. A task without a bound of its own has the
// policy's. This includes a policy without payments: its MaxTask is 0, so that every bound above 0 is refused.
func (p *Policy) paymentExceeded(asked Budget) []Reason {
	if asked.PaymentUSD == "" {
		return nil
	}
	if have, err := repute.ParseDollars("maxPaymentUsd", asked.PaymentUSD); err != nil || have > p.spend.MaxTask {
		return []Reason{over("maxPaymentUsd", asked.PaymentUSD, p.spend.MaxTask.String())}
	}
	return nil
}

// over is the reason of a limit that a task would exceed, with what to change.
func over(field, have, need string) Reason {
	fix := fmt.Sprintf("give budget.%s of at most that", field)
	if field == "planSteps" {
		fix = "plan fewer, or give a larger budget.maxSteps"
	}
	return Reason{ID: "limit." + field, Effect: Deny, Text: fmt.Sprintf("%s is %s, at most %s is allowed: %s", field,
		have, need, fix), Have: have, Need: need}
}
