// Package operate carries out operator actions, which are transactions that a person asks for outside any run:
// setting treasury policies, treasury calls and transfers, identities, agent wallets, and feedback. It also reads the
// treasury.
//
// An Operator has one method per kind. Each turns its request into a job, which is a list of steps, each a
// transaction, and passes the same path (perform): every step is decoded and simulated, the policy decides about all
// of them, the operator action is stored in table acts with the decision, and its steps are sent in their order
// (carryOn), each exactly once by its intent in package wallet. A refused action is stored as well, and a dry run
// stores nothing. A request with the idempotency key of an earlier one of the same caller returns that action.
//
// A request waits a few seconds for its transactions. Whatever is open then, or was left by a crash, is completed by
// Run, in any process. What is signed is followed to its end. What is not signed is decided again once the decision
// is a minute old, and an action of which nothing is signed ends after ten minutes, as nobody waits for it any more.
//
// A change of a policy keeps the values that it does not name. They come from the chain, and must equal the last
// change that is indexed (policyBase), so that one lying endpoint cannot have a policy rewritten with its values. One
// change per agent is open at a time, and what the treasury says of it afterwards is compared with what was signed
// (asAsked).
//
// CompareTreasury compares the treasury's books at an indexed block with its indexed events. A difference means that
// an endpoint held events back.
package operate
