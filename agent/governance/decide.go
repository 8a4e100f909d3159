package governance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Effect is what a decision says.
type Effect string

// Effects, the strongest last: of several that apply the strongest counts.
const (
	Allow             Effect = "allow"
	Degrade           Effect = "degrade"            // serve with less
	RequireValidation Effect = "require_validation" // a validator must confirm the result
	RequireApproval   Effect = "require_approval"   // a person must agree first
	RequirePayment    Effect = "require_payment"
	Deny              Effect = "deny"
)

// strength orders effects; it is -1 for what is none.
func (e Effect) strength() int {
	return slices.Index([]Effect{Allow, Degrade, RequireValidation, RequireApproval, RequirePayment, Deny}, e)
}

// Code names a reason. Codes are stable: clients and logs rely on them.
type Code string

// Codes of reasons.
const (
	CodeReputation  Code = "reputation_too_low"           // the client's score
	CodeUnknown     Code = "reputation_unknown"           // the client's score cannot be read now
	CodePayment     Code = "payment_required"             // requirePaymentForAll
	CodeFreeTier    Code = "free_tier_exhausted"          // freeTierRateLimit
	CodeValidation  Code = "validation_required"          // the price, or the capability
	CodeValidator   Code = "validator_reputation_too_low" // the validator's score
	CodeDegraded    Code = "own_reputation_low"           // the agent's own score
	CodeShutdown    Code = "shutdown_low_reputation"      // the agent's own score
	CodeMaintenance Code = "maintenance"                  // the maintenance window
	CodeStale       Code = "own_score_stale"              // the own score is unknown or old
	CodeRule        Code = "custom_rule"                  // Rule says which
	CodeRuleFailed  Code = "custom_rule_failed"           // it could not be evaluated
)

// Reason is a rule that applies.
type Reason struct {
	Code   Code   `json:"code"`
	Rule   string `json:"rule"` // the member of the policy, or the id of a custom rule
	Effect Effect `json:"effect"`
	Text   string `json:"text"`
	// Have and Need tell what is missing; empty for custom rules.
	Have string `json:"have,omitempty"`
	Need string `json:"need,omitempty"`
	// Until is when the same request could be answered otherwise; zero where that is not known.
	Until time.Time `json:"until,omitzero"`
}

// Decision is what a policy says of one request.
type Decision struct {
	Effect  Effect   `json:"effect"`
	Reasons []Reason `json:"reasons"` // all that apply
}

// Has reports whether a reason has an effect, also where a stronger one decides.
func (d *Decision) Has(e Effect) bool {
	return e == Allow && d.Effect == Allow ||
		slices.ContainsFunc(d.Reasons, func(r Reason) bool { return r.Effect == e })
}

// Merge adds the reasons of another decision. The strongest effect counts.
func (d *Decision) Merge(other Decision) { d.add(other.Reasons...) }

func (d *Decision) add(reasons ...Reason) {
	for _, r := range reasons {
		d.Reasons = append(d.Reasons, r)
		if r.Effect.strength() > d.Effect.strength() {
			d.Effect = r.Effect
		}
	}
}

// Score is a score of the index, -100 to 100, with its bounds. The zero value is that of an unrated
// client or agent.
type Score struct {
	Value float64
	Low   float64 // the score is shown to be at least this
	High  float64 // and at most this
	Rated bool    // false: no rater that the index trusts has rated, and rules see 0 for value and bounds
	// Unknown says that the index did not tell the score: it is not known whether there is one.
	Unknown bool
	At      time.Time // when it was read; zero when it never was
}

// orUnrated is the score as rules see it.
func (s Score) orUnrated() Score {
	if !s.Rated {
		s.Value, s.Low, s.High = 0, 0, 0
	}
	return s
}

// Client is who asks.
type Client struct {
	Address common.Address // zero where the client gave no proof of one
	// Identity is what free requests are counted by: the address where it is rated, else the network
	// address, because keys cost nothing.
	Identity string
	Score    Score
}

// Request is what a decision is about.
type Request struct {
	Capability         string
	TrustTier          int
	RequiresValidation bool
	Client             Client
	Price              *Price // that the client pays, or would; nil for a free request
	Paid               bool   // a payment was verified
}

// Decide judges one request in a mode. It never fails: what cannot be evaluated denies.
func (p *Policy) Decide(ctx context.Context, req *Request, state State, now time.Time) Decision {
	d := Decision{Effect: Allow}
	d.add(state.Reasons...)
	d.add(p.unknown(req.Client.Score)...)
	d.add(p.client(req.Client.Score)...)
	if p.file.Rules.Payment.RequirePaymentForAll && !req.Paid {
		d.add(Reason{Code: CodePayment, Rule: "rules.payment.requirePaymentForAll", Effect: RequirePayment,
			Text: "every request to this agent must be paid"})
	}
	d.add(p.validation(req)...)
	d.add(p.customReasons(ctx, req, state, now)...)
	return d
}

// unknown refuses a client whose score would be compared and cannot be read. Taking it for unrated would
// serve the clients that the agent refuses, whenever the index does not answer.
func (p *Policy) unknown(s Score) []Reason {
	if !s.Unknown || !p.ReadsClientScore() || p.file.Rules.Reputation.UnknownClients == UnknownAllow {
		return nil
	}
	return []Reason{{Code: CodeUnknown, Rule: "rules.reputation.unknownClients", Effect: Deny,
		Text: "the client's score cannot be read now"}}
}

// client compares a client's score with the thresholds. The admission threshold reads the lower
// bound, the refusal the upper one, so that little evidence neither admits nor refuses.
func (p *Policy) client(s Score) (out []Reason) {
	s = s.orUnrated()
	rules := p.file.Rules.Reputation
	if least := rules.MinClientReputation; least != nil && s.Low < *least {
		out = append(out, low(CodeReputation, Deny, "rules.reputation.minClientReputation",
			"the client's score does not reach what the agent asks for", s.Low, *least))
	}
	if least := rules.RejectBelowScore; least != nil && s.High < *least {
		out = append(out, low(CodeReputation, Deny, "rules.reputation.rejectBelowScore",
			"the client's score is below what the agent accepts", s.High, *least))
	}
	return out
}

// low is the reason of a score that is too low.
func low(code Code, effect Effect, rule, text string, have, need float64) Reason {
	return Reason{Code: code, Rule: rule, Effect: effect, Text: text, Have: number(have), Need: number(need)}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// validation returns the reasons for which a validator must confirm the result; none: no validator is needed.
func (p *Policy) validation(req *Request) (out []Reason) {
	if req.RequiresValidation {
		out = append(out, Reason{Code: CodeValidation, Rule: "requiresValidation", Effect: RequireValidation,
			Text: "the capability asks for it"})
	}
	why, have, need := p.file.Rules.Validation.RequireValidationAbove.exceeded(req.Price)
	if why != "" {
		out = append(out, Reason{Code: CodeValidation, Rule: "rules.validation.requireValidationAbove",
			Effect: RequireValidation, Text: why, Have: have, Need: need})
	}
	return out
}

// Validator judges whether a validator is good enough: the lower bound of its score counts.
func (p *Policy) Validator(s Score) Decision {
	s = s.orUnrated()
	d := Decision{Effect: Allow}
	if least := p.file.Rules.Validation.ValidatorMinReputation; least != nil && s.Low < *least {
		d.add(low(CodeValidator, Deny, "rules.validation.validatorMinReputation",
			"the validator's score does not reach what the agent asks for", s.Low, *least))
	}
	return d
}

// RefundsFailure reports whether a settled payment is owed back when the call failed.
func (p *Policy) RefundsFailure() bool { return p.file.Rules.Payment.RefundPolicy == RefundOnFailure }

// FreeKey names a counter of free requests.
type FreeKey struct {
	Client     string // Client.Identity
	Capability string
	Hour       time.Time // the start of the hour, UTC
}

// FreeCounter counts free requests, for all processes of an agent.
type FreeCounter interface {
	// TakeFree counts one request unless the limit is reached, atomically, and reports whether it did.
	TakeFree(ctx context.Context, key FreeKey, limit int) (bool, error)
}

// TakeFree counts a free request that all other rules allow. The error is the counter's: the request
// MUST then not be served as a free one.
func (p *Policy) TakeFree(ctx context.Context, c FreeCounter, req *Request, now time.Time) (Decision, error) {
	limit := p.file.Rules.Payment.FreeTierRateLimit
	if limit == nil || req.Price != nil {
		return Decision{Effect: Allow}, nil
	}
	key := FreeKey{Client: req.Client.Identity, Capability: req.Capability, Hour: now.UTC().Truncate(time.Hour)}
	ok, err := c.TakeFree(ctx, key, *limit)
	if err != nil {
		return Decision{}, fmt.Errorf("free requests: %w", err)
	}
	d := Decision{Effect: Allow}
	if !ok {
		r := Reason{Code: CodeFreeTier, Rule: "rules.payment.freeTierRateLimit", Effect: Deny,
			Text: "the free requests of this hour are used up", Need: strconv.Itoa(*limit) + " per hour"}
		if *limit > 0 {
			r.Until = key.Hour.Add(time.Hour)
		}
		d.add(r)
	}
	return d, nil
}
