package governance

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"repute"
	"repute/internal/strictjson"
)

// File is a policy as written. An absent rule allows: every threshold is a pointer.
type File struct {
	Version string  `json:"version"` // "1.0"
	AgentID AgentID `json:"agentId"`
	// IssuedAt is when the owner signed the policy. An older policy than one that was in force is
	// refused. It is nil where the policy has none.
	IssuedAt  *time.Time `json:"issuedAt,omitempty"`
	Rules     Rules      `json:"rules"`
	Signature string     `json:"signature,omitempty"` // of the agent's owner, 0x and hex digits
}

// Rules are the groups of rules.
type Rules struct {
	Reputation Reputation   `json:"reputation"`
	Payment    Payment      `json:"payment"`
	Validation Validation   `json:"validation"`
	Shutdown   Shutdown     `json:"shutdown"`
	Upgrade    Upgrade      `json:"upgrade"`
	Custom     []CustomRule `json:"custom"`
}

// Reputation holds thresholds on scores, -100 to 100.
type Reputation struct {
	// MinClientReputation refuses clients whose score is not shown to reach it: the lower bound counts.
	MinClientReputation *float64 `json:"minClientReputation"`
	// RejectBelowScore refuses clients whose score is shown to be below it: the upper bound counts.
	RejectBelowScore *float64 `json:"rejectBelowScore"`
	// UnknownClients says what becomes of a client whose score cannot be read now, where a rule reads
	// it: UnknownRefuse or UnknownAllow, which takes the client for unrated.
	UnknownClients string `json:"unknownClients"`
	// DegradeServiceBelowScore is for the agent's own score: the lower bound counts.
	DegradeServiceBelowScore *float64 `json:"degradeServiceBelowScore"`
}

// What becomes of clients whose score cannot be read.
const (
	UnknownRefuse = "refuse"
	UnknownAllow  = "allow"
)

// Payment says who pays.
type Payment struct {
	RequirePaymentForAll bool `json:"requirePaymentForAll"`
	// FreeTierRateLimit is how many free requests a client has per capability and hour. It is nil
	// for no limit.
	FreeTierRateLimit *int   `json:"freeTierRateLimit"`
	RefundPolicy      string `json:"refundPolicy"`
}

// Refund policies.
const (
	RefundNone      = "none"      // a payment that was settled is kept
	RefundOnFailure = "onFailure" // it is owed back when the call failed
)

// Validation says when results need a validator, and which.
type Validation struct {
	RequireValidationAbove Thresholds `json:"requireValidationAbove"`
	ValidatorMinReputation *float64   `json:"validatorMinReputation"`
}

// Shutdown says when the agent stops serving.
type Shutdown struct {
	AutoShutdownOnLowReputation bool `json:"autoShutdownOnLowReputation"`
	// ShutdownThreshold is for the agent's own score: the upper bound counts.
	ShutdownThreshold *float64 `json:"shutdownThreshold"`
	// AutoRestartWhenFixed ends a shutdown when the score is above the threshold again. Otherwise
	// the operator ends it.
	AutoRestartWhenFixed bool `json:"autoRestartWhenFixed"`
}

// Upgrade says when the agent may be upgraded.
type Upgrade struct {
	AutoUpgrade       bool   `json:"autoUpgrade"`
	MaintenanceWindow string `json:"maintenanceWindow"` // cron, five fields, UTC
	// MaintenanceMinutes is how long the agent refuses requests from each time of the window on. It
	// is 0 where the window does not interrupt service.
	MaintenanceMinutes int `json:"maintenanceMinutes"`
}

// CustomRule is a condition of the operator's own, in CEL.
type CustomRule struct {
	ID     string `json:"id"`
	When   string `json:"when"`
	Effect Effect `json:"effect"`
	Reason string `json:"reason"` // for people
}

// AgentID is a decimal agent id. Its JSON form is a number or a string.
type AgentID string

// UnmarshalJSON reads a number up to 2^53 or a string.
func (id *AgentID) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	} else if n, err := strconv.ParseUint(text, 10, 64); err != nil || n > 1<<53 {
		return errors.New("is no integer up to 2^53; write it as a string")
	}
	token, err := repute.ParseTokenID(text)
	if err != nil {
		return errors.New("is no agent id: decimal digits of a uint256")
	}
	*id = AgentID(token.Dec())
	return nil
}

// decode reads a policy from JSON. repute.ErrInvalid names the member that is unknown, given twice or
// of the wrong type.
func decode(raw []byte) (f File, err error) {
	return f, document().Decode(raw, &f)
}

// document returns how errors name a policy and its members.
func document() strictjson.Document {
	return strictjson.Document{Name: "policy", Unknown: "is no member of a policy",
		Hint: "docs/reference/agent-policy.md lists the members"}
}

const (
	maxCustom  = 50
	maxRate    = 1_000_000
	maxMinutes = 24 * 60
)

// check returns every value that is out of range, as repute.ErrInvalid.
func (f *File) check() error {
	var wrong []error
	need := func(ok bool, field, reason, hint string) {
		if !ok {
			wrong = append(wrong, repute.Invalid(field, reason, hint))
		}
	}
	need(f.Version == "1.0", "version", fmt.Sprintf("%.40q is not known", f.Version), `"1.0"`)
	need(f.IssuedAt == nil || f.IssuedAt.Unix() > 0, "issuedAt", "is no time of a signature",
		"such as 2026-11-24T12:00:00Z")
	need(f.AgentID != "", "agentId", "missing", "the agent's id: 42")
	r := &f.Rules
	for field, threshold := range map[string]*float64{
		"rules.reputation.minClientReputation":      r.Reputation.MinClientReputation,
		"rules.reputation.rejectBelowScore":         r.Reputation.RejectBelowScore,
		"rules.reputation.degradeServiceBelowScore": r.Reputation.DegradeServiceBelowScore,
		"rules.validation.validatorMinReputation":   r.Validation.ValidatorMinReputation,
		"rules.shutdown.shutdownThreshold":          r.Shutdown.ShutdownThreshold,
	} {
		need(threshold == nil || *threshold >= -100 && *threshold <= 100, field, "is no score", "-100 to 100")
	}
	need(r.Reputation.UnknownClients == UnknownRefuse || r.Reputation.UnknownClients == UnknownAllow,
		"rules.reputation.unknownClients", fmt.Sprintf("%.40q is not known", r.Reputation.UnknownClients),
		"refuse or allow")
	limit := r.Payment.FreeTierRateLimit
	need(limit == nil || *limit >= 0 && *limit <= maxRate, "rules.payment.freeTierRateLimit", "out of range",
		"0 to 1000000")
	need(r.Payment.RefundPolicy == RefundNone || r.Payment.RefundPolicy == RefundOnFailure,
		"rules.payment.refundPolicy", fmt.Sprintf("%.40q is not known", r.Payment.RefundPolicy), "none or onFailure")
	need(!r.Shutdown.AutoShutdownOnLowReputation || r.Shutdown.ShutdownThreshold != nil,
		"rules.shutdown.shutdownThreshold", "missing", "a score, as autoShutdownOnLowReputation is true")
	need(r.Upgrade.MaintenanceMinutes >= 0 && r.Upgrade.MaintenanceMinutes <= maxMinutes,
		"rules.upgrade.maintenanceMinutes", "out of range", "0 to 1440")
	need(r.Upgrade.MaintenanceMinutes == 0 || r.Upgrade.MaintenanceWindow != "",
		"rules.upgrade.maintenanceWindow", "missing", "cron, as maintenanceMinutes is not 0")
	need(len(r.Custom) <= maxCustom, "rules.custom", "too many rules", "at most 50")
	return errors.Join(wrong...)
}

// maintenance is how long a window lasts.
func (u Upgrade) maintenance() time.Duration {
	return time.Duration(u.MaintenanceMinutes) * time.Minute
}
