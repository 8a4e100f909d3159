package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"repute"
)

// Threshold is what an agent must reach before it may work. Zero values ask for nothing. It is part of requests,
// manifests and policies alike, so that its members have the names of JSON and YAML. MinReputation is a pointer because
// 0 is a demand: an agent without a score does not reach it.
type Threshold struct {
	MinTrustScore       float64  `yaml:"minTrustScore" json:"minTrustScore,omitempty" minimum:"0" maximum:"1" doc:"OpenFi's"`
	RequireIdentity     bool     `yaml:"requireIdentity" json:"requireIdentity,omitempty"`
	RequireRegistration bool     `yaml:"requireRegistration" json:"requireRegistration,omitempty"`
	RequireValidation   bool     `yaml:"requireValidation" json:"requireValidation,omitempty"`
	MinReputation       *float64 `yaml:"minReputation" json:"minReputation,omitempty" minimum:"-100" maximum:"100" doc:"of the lower bound"`
	MinTier             int64    `yaml:"minTier" json:"minTier,omitempty" minimum:"0" maximum:"4"`
	// Verified refuses provisional scores too.
	Verified bool     `yaml:"verified" json:"verified,omitempty" doc:"the score follows from verified blocks alone"`
	Gates    []string `yaml:"gates" json:"gates,omitempty" doc:"that must be passed"`
}

// Trust are the thresholds of a policy.
type Trust struct {
	// Unrated is what becomes of an agent that nobody vouched for where a threshold asks for
	// reputation, tier or gates, and of a thin one where it asks for more than its tier: deny when empty.
	Unrated Effect `yaml:"unrated"`
	// Unproven is what becomes of an agent whose program cannot show any more that it speaks
	// for its identity: deny when empty.
	Unproven Effect `yaml:"unproven"`
	// Negative is what becomes of an agent whose score is below 0, also where no threshold
	// asks for reputation: deny when empty.
	Negative  Effect    `yaml:"negative"`
	Threshold Threshold `yaml:"threshold"` // of every task
	// ByValue are further thresholds of tasks with that much at risk.
	ByValue []ValueThreshold `yaml:"byValue"`
	// Tokens are what tokens count for where value is compared; one that is not listed
	// counts for more than any value.
	Tokens []TokenPrice `yaml:"tokens"`
}

// ValueThreshold applies from a value on.
type ValueThreshold struct {
	// FromWei is a decimal number; Threshold applies to this value and to all above it.
	FromWei   string    `yaml:"fromWei"`
	Threshold Threshold `yaml:"threshold"`
}

// complete fills in deny where the policy gives no effect. repute.ErrInvalid names the field. It writes to the file's
// copy in the policy, once, before the policy is shared.
func (t *Trust) complete() error {
	for field, effect := range map[string]*Effect{"unrated": &t.Unrated, "unproven": &t.Unproven,
		"negative": &t.Negative} {
		if *effect == "" {
			*effect = Deny
		}
		if !effect.known() {
			return repute.Invalid("trust."+field, fmt.Sprintf("%q is no effect", *effect), effects)
		}
	}
	if err := t.Threshold.Check("trust.threshold"); err != nil {
		return err
	}
	for i, v := range t.ByValue {
		at := fmt.Sprintf("trust.byValue[%d]", i)
		if _, err := amountOf(v.FromWei); err != nil {
			return repute.Invalid(at+".fromWei", err.Error(), "decimal digits, in wei")
		}
		if err := v.Threshold.Check(at + ".threshold"); err != nil {
			return err
		}
	}
	return nil
}

// Check refuses a threshold out of range. The error is repute.ErrInvalid and names the
// field below at. The comparisons are written so that NaN, which YAML has, is out of range.
func (t Threshold) Check(at string) error {
	switch {
	case !(t.MinTrustScore >= 0 && t.MinTrustScore <= 1):
		return repute.Invalid(at+".minTrustScore", fmt.Sprintf("%g is out of range", t.MinTrustScore), "0 to 1")
	case t.MinReputation != nil && !(*t.MinReputation >= -100 && *t.MinReputation <= 100):
		return repute.Invalid(at+".minReputation", fmt.Sprintf("%g is out of range", *t.MinReputation), "-100 to 100")
	case t.MinTier < 0 || t.MinTier > 4:
		return repute.Invalid(at+".minTier", fmt.Sprintf("%d is out of range", t.MinTier), "0 to 4")
	}
	return nil
}

// CheckGates refuses gates that no agent can be asked to pass. The error is
// repute.ErrInvalid and names the field below at.
func (t Threshold) CheckGates(at string, known []string) error {
	for i, g := range t.Gates {
		if !slices.Contains(known, g) {
			return repute.Invalid(fmt.Sprintf("%s.gates[%d]", at, i),
				fmt.Sprintf("%.60q is no gate that an agent can be asked to pass", g),
				"one of "+strings.Join(known, ", "))
		}
	}
	return nil
}

// CheckGates refuses a policy that asks for gates which no agent can be asked to pass.
// Parse does not: the gates are those of the scores, not of the policy. A program that reads a policy calls it before
// the policy is used, so that a misspelled gate is an error of the configuration and not a refusal of every agent.
func (p *Policy) CheckGates(known []string) error {
	trust := &p.file.Trust
	if err := trust.Threshold.CheckGates("trust.threshold", known); err != nil {
		return err
	}
	for i, v := range trust.ByValue {
		if err := v.Threshold.CheckGates(fmt.Sprintf("trust.byValue[%d].threshold", i), known); err != nil {
			return err
		}
	}
	return nil
}

// Gate compares an agent with the policy's thresholds and the task's own. All reasons
// are given, not the first alone.
//
// Thresholds add up: those of every task, the task's own, and each of byValue whose value is reached. A reason that
// several of them give in the same words is listed once. The two reasons about proof and negative scores come first and
// do not depend on any threshold. A policy may soften only these two and Unrated to require_approval; what a threshold
// asks for and an agent does not reach is always denied.
func (p *Policy) Gate(task Task, own Threshold, a Agent) Decision {
	d := Decision{Effect: Allow}
	value, err := amountOf(task.Value)
	if err != nil {
		d.add(Reason{ID: "trust.value", Effect: Deny, Text: "value at risk: " + err.Error()})
		return d
	}
	if a.Unproven != "" {
		d.add(Reason{ID: "identity.proof", Effect: p.file.Trust.Unproven, Text: a.Unproven, Have: "unproven",
			Need: "proven"})
	}
	if a.Status == StatusRated && a.Score < 0 {
		d.add(Reason{ID: "trust.negative", Effect: p.file.Trust.Negative, Text: "the agent's score is negative",
			Have: number(a.Score), Need: "0"})
	}
	for _, t := range p.file.Trust.of(value, own) {
		for _, r := range t.lacks(a, p.file.Trust.Unrated) {
			d.addNew(r)
		}
	}
	return d
}

// Demands is what a task's agent must reach by the policy and the task's own threshold: of
// each condition the hardest. repute.ErrInvalid: the task's value is no amount. It is for people and programs that ask
// what to improve; Gate does not use it.
func (p *Policy) Demands(task Task, own Threshold) (t Threshold, err error) {
	value, err := amountOf(task.Value)
	if err != nil {
		return own, fmt.Errorf("value at risk: %w", err)
	}
	for _, next := range p.file.Trust.of(value, own) {
		t = t.and(next)
	}
	return t, nil
}

// and is the threshold that only those reach who reach both. slices.Clip makes append copy, because t may be a
// threshold of the policy, which is shared.
func (t Threshold) and(u Threshold) Threshold {
	t.MinTrustScore, t.MinTier = max(t.MinTrustScore, u.MinTrustScore), max(t.MinTier, u.MinTier)
	t.RequireIdentity, t.Verified = t.RequireIdentity || u.RequireIdentity, t.Verified || u.Verified
	t.RequireRegistration = t.RequireRegistration || u.RequireRegistration
	t.RequireValidation = t.RequireValidation || u.RequireValidation
	if t.MinReputation == nil || u.MinReputation != nil && *u.MinReputation > *t.MinReputation {
		t.MinReputation = u.MinReputation
	}
	for _, g := range u.Gates {
		if !slices.Contains(t.Gates, g) {
			t.Gates = append(slices.Clip(t.Gates), g)
		}
	}
	return t
}

// of lists the thresholds of a task. One whose value cannot be read applies to every task, although complete refuses
// such a policy: the safe side.
func (t Trust) of(value *big.Int, own Threshold) []Threshold {
	out := []Threshold{t.Threshold, own}
	for _, v := range t.ByValue {
		if from, err := amountOf(v.FromWei); err != nil || value.Cmp(from) >= 0 {
			out = append(out, v.Threshold)
		}
	}
	return out
}

// lacks lists what an agent does not reach. The checks of identity come first, because an agent without an identity
// fails all others as well. unrated is the effect for agents without a score.
func (t Threshold) lacks(a Agent, unrated Effect) (out []Reason) {
	need := func(missing bool, field, text, have, want string) {
		if missing {
			out = append(out, Reason{ID: "trust." + field, Effect: Deny, Text: text, Have: have, Need: want})
		}
	}
	need(t.RequireIdentity && !a.IdentityExists, "requireIdentity", "the agent has no identity", "false", "true")
	need(t.RequireRegistration && !a.RegistrationResolves, "requireRegistration",
		"the agent's registration file cannot be read", "false", "true")
	need(t.RequireValidation && a.Validation != ValidationPassed, "requireValidation", "the agent is not validated",
		a.Validation, ValidationPassed)
	need(a.Trust01 < t.MinTrustScore, "minTrustScore", "the agent's identity checks do not reach the threshold",
		number(a.Trust01), number(t.MinTrustScore))
	need(t.Verified && !a.Verified, "verified", "the blocks that the agent's score follows from are not verified",
		"false", "true")
	return append(out, t.lacksReputation(a, unrated)...)
}

// lacksReputation reads the lower bound, as upward gates do. A thin agent reaches its tier and nothing else: the word
// of one rater does not admit. An agent that is unrated or thin gets one reason with the effect unrated instead of one
// for each condition: which numbers it lacks means nothing without evidence.
func (t Threshold) lacksReputation(a Agent, unrated Effect) (out []Reason) {
	if t.MinReputation == nil && t.MinTier == 0 && len(t.Gates) == 0 {
		return nil
	}
	if a.Status != StatusRated && a.Status != StatusThin {
		text := cmp.Or(a.WhyUnrated, "no rater of the agent has weight, neither from roots nor from sources")
		if !a.IdentityExists {
			text = "the agent has no identity: nobody can rate it"
		}
		return []Reason{{ID: "trust.unrated", Effect: unrated, Text: text, Have: a.Status, Need: StatusRated}}
	}
	if a.Status == StatusThin && (t.MinReputation != nil || len(t.Gates) > 0 || a.Tier < t.MinTier) {
		text := "too few trusted raters speak of the agent"
		return []Reason{{ID: "trust.thin", Effect: unrated, Text: text, Have: a.Status, Need: StatusRated}}
	}
	if t.MinReputation != nil && a.Low < *t.MinReputation {
		out = append(out, Reason{ID: "trust.minReputation", Effect: Deny,
			Text: "the lower bound of the agent's score is below the threshold", Have: number(a.Low),
			Need: number(*t.MinReputation)})
	}
	if a.Tier < t.MinTier {
		out = append(out, Reason{ID: "trust.minTier", Effect: Deny, Text: "the agent's tier is below the threshold",
			Have: strconv.FormatInt(a.Tier, 10), Need: strconv.FormatInt(t.MinTier, 10)})
	}
	for _, g := range t.Gates {
		if !a.Gates[g] {
			out = append(out, Reason{ID: "trust.gates." + g, Effect: Deny, Text: a.failsGate(g), Have: "false",
				Need: "true"})
		}
	}
	return out
}

// failsGate tells a gate that the agent does not pass from one that scores do not have: a
// slip of the pen must not read like a bad agent.
func (a Agent) failsGate(name string) string {
	if _, known := a.Gates[name]; known || len(a.Gates) == 0 {
		return "the agent does not pass the gate " + strconv.Quote(name)
	}
	return fmt.Sprintf("there is no gate %q: scores have %s", name,
		strings.Join(slices.Sorted(maps.Keys(a.Gates)), ", "))
}

// number writes a number in as few digits as read back to the same value.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
