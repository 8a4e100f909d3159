// Package capability describes what an agent offers and checks what goes in and out. It does no I/O.
//
// ParseDefinition reads a Definition strictly, and New checks it, fills in its defaults and compiles its JSON Schemas.
// The resulting Capability does not change and is safe for concurrent use. It validates inputs and outputs: the errors
// are repute.ErrInvalid, name each wrong field by its JSON pointer and quote no value, because a value may be secret or
// hostile.
//
// Callers who have not paid choose the documents, so that validation is bounded in depth, values and steps. The library
// of JSON Schema has no such bounds and cannot be interrupted. Therefore each part of a compiled schema counts its
// steps through its format, and a validation that uses them up ends its own goroutine (meter). A compiled copy counts
// for one validation at a time; a schema keeps some copies for the next ones.
//
// TaskHash identifies a request, and is what clients and agents sign. Documents that two readers could read differently
// (a member given twice, an integer that no double holds) are refused before they are hashed or validated. A Call is
// one execution as handlers see it, also on the wire.
package capability
