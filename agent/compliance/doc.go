// Package compliance checks an agent runtime from outside against the Agent Runtime Specification 1.0: the six checks
// of section 16, and the required behavior that a client can see. It works with runtimes in any language: it knows
// HTTP, EIP-712 and x402, and no part of this project's runtime.
//
// Run runs the suite against one URL. It first looks (look): health, the registration file, and which capabilities are
// free and which demand a payment. Most checks read these answers, and some send wrong requests that the runtime has to
// refuse: input that is no JSON, too large bodies, forged and underpaid payments. The last checks are about all answers
// of the suite: the headers, the signatures, and that no internals are shown.
//
// Each check has an outcome of its own. A check whose precondition is missing is skipped with a reason, so that one
// fault of a runtime fails one check. Report.Exit makes the difference between failed and incomplete.
//
// Nothing is paid unless Options has a Payer, and then at most MaxPay per version of x402. Rate limits of the runtime
// are respected. Answers are untrusted: their size is bounded, and what is shown of them is one bounded line.
package compliance
