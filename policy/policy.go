package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"

	"go.yaml.in/yaml/v4"

	"repute"
)

// Effect is what a decision says.
type Effect string

// Effects, the strongest last: of several that apply the strongest counts.
const (
	Allow           Effect = "allow"
	RequireApproval Effect = "require_approval"
	Deny            Effect = "deny"
)

// File is a policy as written: YAML, or JSON. Unknown keys are errors, so that a misspelled limit is not silently
// absent.
type File struct {
	Version string `yaml:"version"`
	// Limits bound every budget. What is absent is OpenFi's default.
	Limits Bounds `yaml:"limits"`
	Trust  Trust  `yaml:"trust"`
	// SendWithoutDryRun lets agents in other programs send transactions that they did not show
	// in a dry run.
	SendWithoutDryRun bool `yaml:"sendWithoutDryRun"`
	// Payments let agents pay for answers by x402. Nil: nothing is paid.
	Payments *Payments `yaml:"payments"`
	// Default is the effect when no rule applies: allow when empty.
	Default Effect `yaml:"default"`
	Rules   []Rule `yaml:"rules"`
}

// Rule is one condition with its effect. All rules are evaluated, and the order does not matter for the effect. IDs are
// unique, because reasons name them.
type Rule struct {
	ID     string `yaml:"id"`
	When   string `yaml:"when"` // a CEL expression of type bool over Input's fields
	Effect Effect `yaml:"effect"`
	Reason string `yaml:"reason"` // for people
}

// Policy is a checked policy. It does not change and is safe for concurrent use. limits has the defaults filled in
// where the file has none; spend is the zero value without payments.
type Policy struct {
	text   []byte
	file   File
	limits Budget
	spend  Spending
	hash   [sha256.Size]byte
	rules  []program
	worth  map[asset]price
}

// Hash is the sha256 of the policy's bytes.
func (p *Policy) Hash() [sha256.Size]byte { return p.hash }

// Limits bound every budget. Its empty texts are no limit.
func (p *Policy) Limits() Budget { return p.limits }

// SendWithoutDryRun reports whether agents in other programs may send transactions that they
// did not show in a dry run.
func (p *Policy) SendWithoutDryRun() bool { return p.file.SendWithoutDryRun }

// Decision is what a policy says of one input. Reasons may be non-empty for Allow too: they are the rules with the
// effect allow that applied.
type Decision struct {
	Effect  Effect   `json:"effect"`
	Reasons []Reason `json:"reasons"` // all that apply, in the order of the policy
}

// Reason is a limit, threshold or rule that applies. It is comparable, which Merge needs. Text is for people and may
// change; programs compare ID.
type Reason struct {
	ID     string `json:"id"` // of the rule, or limit.FIELD, trust.FIELD, default
	Effect Effect `json:"effect"`
	Text   string `json:"text"`
	// Have and Need tell what is missing; empty for rules.
	Have string `json:"have,omitempty"`
	Need string `json:"need,omitempty"`
}

// maxFile bounds a policy's text, in bytes.
const maxFile = 1 << 20

// Parse checks a policy. The error is repute.ErrInvalid and names every rule that does
// not compile. The empty text is no policy, since the version is missing. Checks run in the order limits, trust,
// payments, tokens, rules, and only rules are checked to the end before the error is returned.
func Parse(text []byte) (*Policy, error) {
	if len(text) > maxFile {
		return nil, repute.Invalid("policy", "larger than 1 MiB", "fewer rules")
	}
	p := &Policy{hash: sha256.Sum256(text), text: bytes.Clone(text)}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&p.file); err != nil && !errors.Is(err, io.EOF) {
		return nil, repute.Invalid("policy", err.Error(), "docs/reference/orchestrator.md lists the keys")
	}
	if more := dec.Decode(&yaml.Node{}); !errors.Is(more, io.EOF) { // its rules would not be read
		return nil, repute.Invalid("policy", "there is a second document behind ---", "one document")
	}
	if err := p.file.complete(); err != nil {
		return nil, err
	}
	p.limits = p.file.Limits.Or(DefaultBudget())
	var err error
	if p.spend, err = p.file.Payments.spending(); err != nil {
		return nil, err
	}
	if p.worth, err = p.file.Trust.prices(); err != nil {
		return nil, err
	}
	p.rules, err = compile(p.file.Rules)
	return p, err
}

// complete fills in defaults and checks what is no rule.
func (f *File) complete() error {
	if f.Version != "1" {
		return repute.Invalid("version", fmt.Sprintf("%q is not known", f.Version), `"1"`)
	}
	if f.Default == "" {
		f.Default = Allow
	}
	if !f.Default.known() {
		return repute.Invalid("default", fmt.Sprintf("%q is no effect", f.Default), effects)
	}
	if err := f.Limits.Check(); err != nil {
		return err
	}
	if f.Limits.PaymentUSD != "" {
		return repute.Invalid("limits.maxPaymentUsd", "is a bound of tasks", "payments.maxTask")
	}
	return f.Trust.complete()
}

const effects = "allow, require_approval or deny"

func (e Effect) known() bool { return e.strength() >= 0 }

// strength orders effects: the strongest of all reasons is the decision. It is -1 for what is no effect.
func (e Effect) strength() int {
	switch e {
	case Allow:
		return 0
	case RequireApproval:
		return 1
	case Deny:
		return 2
	}
	return -1
}

// Text is the policy as it was written.
func (p *Policy) Text() []byte { return bytes.Clone(p.text) }

// Decide evaluates limits and rules. It never fails: what cannot be evaluated denies.
//
// The order of the reasons is limits, payments, rules in the order of the file, default. The effect default applies
// only where no rule does, and never where only a limit is exceeded: a limit denies by itself. The context may end the
// evaluation of a rule over a list, which then denies.
func (p *Policy) Decide(ctx context.Context, in *Input) Decision {
	d := Decision{Effect: Allow}
	for _, r := range append(p.limits.exceeded(in.Task.Budget, in.Plan), p.paymentExceeded(in.Task.Budget)...) {
		d.add(r)
	}
	applied := false
	for _, rule := range p.rules {
		if r, applies := rule.evaluate(ctx, in); applies {
			d.add(r)
			applied = true
		}
	}
	if !applied && p.file.Default != Allow {
		d.add(Reason{ID: "default", Effect: p.file.Default,
			Text: "no rule applies, and default of the policy is " + string(p.file.Default)})
	}
	return d
}

// add appends a reason. A weaker effect never replaces a stronger one.
func (d *Decision) add(r Reason) {
	d.Reasons = append(d.Reasons, r)
	if r.Effect.strength() > d.Effect.strength() {
		d.Effect = r.Effect
	}
}

// Merge adds the reasons of another decision that are new. The strongest effect counts. It is used to join the answers
// of Gate and Decide.
func (d *Decision) Merge(other Decision) {
	for _, r := range other.Reasons {
		d.addNew(r)
	}
}

// addNew is add of a reason unless the decision has it.
func (d *Decision) addNew(r Reason) {
	if !slices.Contains(d.Reasons, r) {
		d.add(r)
	}
}

// amountOf reads a decimal amount, 0 or more. A sign, a space, an exponent or hexadecimal digits are errors. Leading
// zeros are allowed. The length is checked before the digits, because SetString takes time that grows with the square
// of the length.
func amountOf(s string) (*big.Int, error) {
	if len(s) == 0 || len(s) > maxDigits {
		return nil, fmt.Errorf("amount of %d digits: wanted is a decimal number of at most %d", len(s), maxDigits)
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return nil, fmt.Errorf("amount %q: wanted are decimal digits alone", s)
		}
	}
	v, _ := new(big.Int).SetString(s, 10)
	return v, nil
}

// maxDigits hold every uint256 and the products of two.
const maxDigits = 160
