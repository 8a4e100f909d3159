package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"repute"
	"repute/internal/strictjson"
)

// Scheme says how much of the price is charged.
type Scheme string

// Schemes, named as in x402.
const (
	Exact Scheme = "exact" // the price
	UpTo  Scheme = "upto"  // at most the price, as the handler's work turns out
)

// Settle says when the payment moves.
type Settle string

// Times of settlement.
const (
	SettleBefore Settle = "before" // before the handler starts
	SettleAfter  Settle = "after"  // after the handler succeeded; nothing is charged for a failure
)

// Limits of a definition, and their defaults.
const (
	defaultTimeout = 30 * time.Second
	MaxTimeout     = 5 * time.Minute
	// DefaultMaxBytes bounds a request and an answer where the definition does not.
	DefaultMaxBytes = 10 << 20
	// MaxBytes is the largest bound that a definition can set.
	MaxBytes = 64 << 20
	// maxTier is the highest trust tier.
	maxTier = 4

	maxDescription = 4096
	maxPrices      = 16
)

// Definition is what an operator writes about a capability.
type Definition struct {
	Name        string `json:"name"` // such as code-review
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	// InputSchema and OutputSchema are JSON Schemas, 2020-12 where they name no draft.
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	// Pricing lists alternatives: a client pays one of them. It is empty for a free capability.
	Pricing Prices `json:"pricing,omitempty"`
	Scheme  Scheme `json:"scheme,omitempty"` // exact when empty
	// EstimatedDuration is in seconds.
	EstimatedDuration  float64 `json:"estimatedDuration,omitempty"`
	RequiresValidation bool    `json:"requiresValidation,omitempty"`
	// TrustTier is what the capability asks for, 0 to maxTier.
	TrustTier int `json:"trustTier,omitempty"`
	// SideEffects says that a run changes something outside the agent, so that a failed settlement
	// could not be undone by keeping the answer.
	SideEffects bool `json:"sideEffects,omitempty"`
	// Settle is before for side effects and after otherwise, when empty.
	Settle Settle `json:"settle,omitempty"`
	// MaxRequestBytes and MaxAnswerBytes are DefaultMaxBytes when 0.
	MaxRequestBytes int64 `json:"maxRequestBytes,omitempty"`
	MaxAnswerBytes  int64 `json:"maxAnswerBytes,omitempty"`
	// TimeoutSeconds is defaultTimeout when 0.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
}

// Price is one way to pay for a call.
type Price struct {
	Amount   string `json:"amount"` // decimal, in units of the currency: 0.001
	Currency string `json:"currency"`
	Network  string `json:"network,omitempty"` // CAIP-2; the agent's own chain when empty
	Asset    string `json:"asset,omitempty"`   // address of the token; the network's known one when empty
}

// Native reports whether the price is in the chain's own coin, which no x402 scheme moves.
func (p Price) Native() bool { return p.Currency == "ETH" && p.Asset == "" }

// Prices is a list of prices. Its JSON form is a list, or one price.
type Prices []Price

// UnmarshalJSON reads a list or one price, and refuses unknown members.
func (p *Prices) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '{' {
		*p = make(Prices, 1)
		return jsonv2.Unmarshal(raw, &(*p)[0], jsonv2.RejectUnknownMembers(true))
	}
	return jsonv2.Unmarshal(raw, (*[]Price)(p), jsonv2.RejectUnknownMembers(true))
}

// ParseDefinition reads a definition from JSON. repute.ErrInvalid names the member that is unknown,
// given twice or of the wrong type. New checks the values.
func ParseDefinition(raw []byte) (d Definition, err error) {
	if err := repute.CheckJSON("capability", raw); err != nil {
		return d, err
	}
	return d, document().Decode(raw, &d)
}

// document returns how errors name a definition and its members.
func document() strictjson.Document {
	return strictjson.Document{Name: "capability", Unknown: "is no member",
		Hint: "the members of a capability definition, each once"}
}

var (
	namePattern     = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	amountPattern   = regexp.MustCompile(`^(0|[1-9][0-9]{0,77})(\.[0-9]{1,36})?$`)
	currencyPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.]{0,15}$`)
	networkPattern  = regexp.MustCompile(`^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$`)
	assetPattern    = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)
	semverPattern   = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
)

// complete fills in defaults and checks the values. The error joins all that are wrong.
func (d *Definition) complete() error {
	d.setDefaults()
	var wrong []error
	need := func(ok bool, field, reason, hint string) {
		if !ok {
			wrong = append(wrong, repute.Invalid(field, reason, hint))
		}
	}
	need(len(d.Name) <= 64 && namePattern.MatchString(d.Name), "name", fmt.Sprintf("%.80q is no name", d.Name),
		"at most 64 lower-case letters and digits, in words joined by hyphens: code-review")
	need(len(d.Version) <= 64 && semverPattern.MatchString(d.Version), "version",
		fmt.Sprintf("%.80q is no version", d.Version), "a semantic version: 1.0.0")
	need(len(d.Description) <= maxDescription, "description", "too long", "at most 4096 bytes")
	need(d.Scheme == Exact || d.Scheme == UpTo, "scheme", fmt.Sprintf("%.40q is not known", d.Scheme), "exact or upto")
	need(d.Settle == SettleBefore || d.Settle == SettleAfter, "settle", fmt.Sprintf("%.40q is not known", d.Settle),
		"before or after")
	need(d.Scheme != UpTo || d.Settle != SettleBefore, "settle", "upto is charged when the amount is known",
		"after, or scheme exact")
	need(d.EstimatedDuration >= 0, "estimatedDuration", "negative", "seconds, 0 or more")
	need(d.TrustTier >= 0 && d.TrustTier <= maxTier, "trustTier", fmt.Sprintf("%d is no tier", d.TrustTier), "0 to 4")
	need(d.TimeoutSeconds > 0 && d.Timeout() <= MaxTimeout, "timeoutSeconds",
		fmt.Sprintf("%d is out of range", d.TimeoutSeconds), "1 to 300")
	for field, n := range map[string]int64{"maxRequestBytes": d.MaxRequestBytes, "maxAnswerBytes": d.MaxAnswerBytes} {
		need(n > 0 && n <= MaxBytes, field, fmt.Sprintf("%d is out of range", n), "1 to 67108864")
	}
	need(len(d.Pricing) <= maxPrices, "pricing", "too many prices", "at most 16")
	for i, p := range d.Pricing {
		wrong = append(wrong, p.check(fmt.Sprintf("pricing[%d]", i)))
	}
	return errors.Join(wrong...)
}

// setDefaults fills in what is empty.
func (d *Definition) setDefaults() {
	if d.Scheme == "" {
		d.Scheme = Exact
	}
	if d.Settle == "" {
		d.Settle = SettleAfter
		if d.SideEffects && d.Scheme == Exact {
			d.Settle = SettleBefore
		}
	}
	if d.MaxRequestBytes == 0 {
		d.MaxRequestBytes = DefaultMaxBytes
	}
	if d.MaxAnswerBytes == 0 {
		d.MaxAnswerBytes = DefaultMaxBytes
	}
	if d.TimeoutSeconds == 0 {
		d.TimeoutSeconds = int(defaultTimeout / time.Second)
	}
}

// Timeout bounds one run of the handler.
func (d *Definition) Timeout() time.Duration { return time.Duration(d.TimeoutSeconds) * time.Second }

// Free reports whether a call costs nothing.
func (d *Definition) Free() bool { return len(d.Pricing) == 0 }

// check returns repute.ErrInvalid for a value that is out of range.
func (p Price) check(at string) error {
	switch {
	case !amountPattern.MatchString(p.Amount):
		return repute.Invalid(at+".amount", fmt.Sprintf("%.90q is no amount", p.Amount),
			"a decimal string in units of the currency: \"0.001\"")
	case !currencyPattern.MatchString(p.Currency):
		return repute.Invalid(at+".currency", fmt.Sprintf("%.40q is no currency", p.Currency), "a symbol: USDC")
	case p.Network != "" && !networkPattern.MatchString(p.Network):
		return repute.Invalid(at+".network", fmt.Sprintf("%.60q is no network", p.Network), "CAIP-2: eip155:8453")
	case p.Asset != "" && !assetPattern.MatchString(p.Asset):
		return repute.Invalid(at+".asset", fmt.Sprintf("%.60q is no address", p.Asset), "0x and 40 hex digits")
	}
	return nil
}
