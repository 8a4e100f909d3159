// Package compliance checks an agent runtime from outside against the Agent Runtime Specification 1.0:
// the six checks of section 16, and the required behavior that a client can see. It works with
// runtimes in any language: it knows HTTP, EIP-712 and x402, and no part of this project's runtime.
//
// Each check has an outcome of its own. A check whose precondition is missing is skipped with a
// reason, so that one fault of a runtime fails one check.
package compliance
