// Package capability describes what an agent offers and checks what goes in and out. It does no
// I/O.
//
// ParseDefinition reads a Definition strictly, and New checks it and compiles its JSON Schemas. A
// Capability then validates inputs and outputs: the errors are repute.ErrInvalid, name each wrong
// field by its JSON pointer and quote no value. Validation is bounded in depth, values and steps,
// because unpaid callers choose the documents. TaskHash and ResultHash are the hashes that an agent
// signs. A Call is one execution as handlers see it.
package capability
