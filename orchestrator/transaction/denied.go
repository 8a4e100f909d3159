package transaction

import (
	"fmt"
	"slices"
	"strings"

	"repute"
	"repute/policy"
)

// DeniedError says that a policy or a rule of the runtime refuses a transaction.
type DeniedError struct{ Reasons []policy.Reason }

// Error gives the reasons.
func (e *DeniedError) Error() string { return "refused: " + Texts(Against(e.Reasons)) }

// Unwrap makes it a repute.ErrInvalid.
func (e *DeniedError) Unwrap() error { return repute.ErrInvalid }

// Against are the reasons for a refusal: those that allow are no part of it.
func Against(reasons []policy.Reason) []policy.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r policy.Reason) bool { return r.Effect == policy.Allow })
}

// Texts joins the texts of reasons, for an error.
func Texts(reasons []policy.Reason) string {
	var out []string
	for _, r := range reasons {
		out = append(out, r.Text)
	}
	return strings.Join(out, "; ")
}

// Refuse makes a DeniedError of a rule of the runtime.
func Refuse(id, format string, args ...any) error {
	return &DeniedError{Reasons: []policy.Reason{{ID: "runtime." + id, Effect: policy.Deny,
		Text: fmt.Sprintf(format, args...)}}}
}
