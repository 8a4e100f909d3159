package repute

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Error kinds. Packages wrap them with %w; package httpapi maps them to responses in one place. An
// error of no kind is internal and never shown to a caller.
var (
	// ErrNotFound: no such agent, feedback, document or chain.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the caller's input is malformed; see InputError.
	ErrInvalid = errors.New("invalid input")
	// ErrConflict: the request contradicts what is stored, e.g. other
	// registries for a known chain.
	ErrConflict = errors.New("conflict")
	// ErrGone: a change cursor older than what is kept, or bytes that are dropped or
	// denied (DeniedError).
	ErrGone = errors.New("gone")
	// ErrUnavailable: a dependency (database, node) does not answer now.
	ErrUnavailable = errors.New("unavailable")
	// ErrLimited: the caller exceeded a rate or size limit.
	ErrLimited = errors.New("limit exceeded")
)

// BusyError is returned when this service has too much of one kind of work. Its text and hint
// reveal nothing internal and are shown to callers.
type BusyError struct {
	What  string        // the work that there is too much of
	Hint  string        // the request that would be answered now, "" for none
	Retry time.Duration // how long to wait before asking again
}

// Error returns What.
func (e *BusyError) Error() string { return e.What }

// Unwrap returns ErrUnavailable.
func (e *BusyError) Unwrap() error { return ErrUnavailable }

// Outcomes of an indexing step. They steer the loop and are not failures.
var (
	// ErrReorged: the node's chain no longer contains the indexed block.
	ErrReorged = errors.New("chain reorganized")
	// ErrFinalized: a reorganization reaches below a finalized block. The chain
	// stops until an operator has looked.
	ErrFinalized = errors.New("reorganization below finality")
	// ErrFenced: another process holds the lease; nothing was committed.
	ErrFenced = errors.New("lease lost")
	// ErrHeld: another process holds the lease and it has not expired.
	ErrHeld = errors.New("lease held")
)

// MissingError names an entity that does not exist.
type MissingError struct {
	What string // e.g. "agent 8453:22"
	Why  string // what is wrong with it, "is not indexed" when empty
	Hint string // what to do, "" if nothing helps
}

// Error reads "what is not indexed".
func (e *MissingError) Error() string { return e.What + " " + cmp.Or(e.Why, "is not indexed") }

// Unwrap returns ErrNotFound.
func (e *MissingError) Unwrap() error { return ErrNotFound }

// Missing returns a MissingError.
func Missing(format string, args ...any) error {
	return &MissingError{What: fmt.Sprintf(format, args...)}
}

// Unknown returns a MissingError for an entity that is not part of the index.
func Unknown(format string, args ...any) error {
	return &MissingError{What: fmt.Sprintf(format, args...), Why: "does not exist"}
}

// DeniedError is returned for content that the operator does not serve.
type DeniedError struct{ Reason string }

// Error reads "denied by the operator: reason".
func (e *DeniedError) Error() string { return "denied by the operator: " + e.Reason }

// Unwrap returns ErrGone.
func (e *DeniedError) Unwrap() error { return ErrGone }

// ConflictError describes a contradiction to stored data or to a node, and the way to resolve it.
type ConflictError struct{ What string }

// Error returns What without the text of the kind, which adds nothing for a reader.
func (e *ConflictError) Error() string { return e.What }

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// Conflict returns a ConflictError.
func Conflict(format string, args ...any) error { return &ConflictError{fmt.Sprintf(format, args...)} }

// InputError names the wrong field and the correction.
type InputError struct {
	Field  string // parameter or path, e.g. "cursor"
	Reason string // what is wrong
	Hint   string // what is allowed
}

// Error reads "field: reason (hint)".
func (e *InputError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.Field, e.Reason, e.Hint)
}

// Unwrap returns ErrInvalid.
func (e *InputError) Unwrap() error { return ErrInvalid }

// Invalid returns an InputError.
func Invalid(field, reason, hint string) error {
	return &InputError{Field: field, Reason: reason, Hint: hint}
}
