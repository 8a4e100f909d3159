package repute

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Error kinds. Packages wrap them with %w; api maps them to the wire in one
// place. An error of no kind is internal and never shown to a caller.
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

// BusyError says that this service has too much of one kind of work for now. Its text and hint
// name nothing of the inside and are shown to callers.
type BusyError struct {
	What  string        // what there is too much of
	Hint  string        // what else would be answered now, "" where nothing would
	Retry time.Duration // how long to wait before asking again
}

// Error gives What alone.
func (e *BusyError) Error() string { return e.What }

// Unwrap makes every BusyError an ErrUnavailable.
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
	// ErrHeld: the lease is held by somebody else and has not expired.
	ErrHeld = errors.New("lease held")
)

// MissingError names what there is not.
type MissingError struct {
	What string // e.g. "agent 8453:22"
	Why  string // what is with it, "is not indexed" when empty
	Hint string // what to do, "" where nothing can be said
}

// Error reads "what is not indexed".
func (e *MissingError) Error() string { return e.What + " " + cmp.Or(e.Why, "is not indexed") }

// Unwrap makes every MissingError an ErrNotFound.
func (e *MissingError) Unwrap() error { return ErrNotFound }

// Missing makes a MissingError.
func Missing(format string, args ...any) error {
	return &MissingError{What: fmt.Sprintf(format, args...)}
}

// Unknown makes a MissingError of what is no part of the index.
func Unknown(format string, args ...any) error {
	return &MissingError{What: fmt.Sprintf(format, args...), Why: "does not exist"}
}

// DeniedError is content the operator does not serve.
type DeniedError struct{ Reason string }

// Error reads "denied by the operator: reason".
func (e *DeniedError) Error() string { return "denied by the operator: " + e.Reason }

// Unwrap makes every DeniedError an ErrGone.
func (e *DeniedError) Unwrap() error { return ErrGone }

// ConflictError says what contradicts what is stored or what a node shows, and the way
// out of it.
type ConflictError struct{ What string }

// Error gives What alone: the kind's word says nothing to a reader.
func (e *ConflictError) Error() string { return e.What }

// Unwrap makes every ConflictError an ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// Conflict makes a ConflictError.
func Conflict(format string, args ...any) error { return &ConflictError{fmt.Sprintf(format, args...)} }

// InputError names the field that is wrong and how to mend it.
type InputError struct {
	Field  string // parameter or path, e.g. "cursor"
	Reason string // what is wrong
	Hint   string // what would be right
}

// Error reads "field: reason (hint)".
func (e *InputError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.Field, e.Reason, e.Hint)
}

// Unwrap makes every InputError an ErrInvalid.
func (e *InputError) Unwrap() error { return ErrInvalid }

// Invalid makes an InputError.
func Invalid(field, reason, hint string) error {
	return &InputError{Field: field, Reason: reason, Hint: hint}
}
