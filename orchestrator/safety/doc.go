// Package safety has the runtime's own rules about transactions, which no policy lifts.
//
// An agent does not change its own identity or trust records, nor those of an agent that it works for, and does not
// rate an agent of the same controllers: Records checks a transaction by its calldata before it is simulated
// (MayTouch), by the logs of its simulation, and by the logs of its receipt (MayLog, Broken). The first finds direct
// calls, the others what happens through other contracts. Where it cannot be told whose records a call changes, it is
// refused.
//
// A payment that names an agent goes to that agent's wallet (PaysPayee): the index's newest final block, its newest
// block and the chain itself must agree, or a stale or lying source could redirect a payment.
//
// A refusal is a *transaction.DeniedError. An error of the database is one of the runtime, journal.ErrRuntime, after
// which the phase is repeated.
package safety
