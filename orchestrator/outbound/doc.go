// Package outbound has the requests that agents make to the world outside, and their answers, in the form in which
// they are journaled: plain HTTP (HTTPRequest), requests that are paid for (PaidRequest, Purchase), and intents of an
// agent.json (IntentRequest). It is the vocabulary that packages orchestrator, payer, intentcall and remote share;
// paying and planning are theirs.
//
// HTTPRequest.Send makes a request once. Its caller MUST pass a client that refuses addresses which must not be
// reached. An answer has at most MaxAnswer bytes and only harmless headers, because it is stored with the receipt and
// shown to all callers who may read the run. Errors quote neither addresses, whose query may hold a secret, nor the
// machine's resolver. The header Idempotency-Key is the same whenever a call is repeated after a crash.
package outbound
