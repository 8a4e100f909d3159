// Package transaction has the types of the transactions that agents request, and computes their effects. It decides
// nothing, reads no table and makes no request.
//
// Tx is the transaction itself: a call, native coin, or an amount of a token. An Intent is a Tx that is sent once,
// for an Origin. Chain is the interface of whatever simulates and sends it; package wallet implements it.
//
// A dry run declares the transactions of Execute. A value that it cannot know yet is a Placeholder with bounds.
// Declare checks such a call, Declared.Fits compares what is sent with it byte by byte, Cases gives the worst values
// that the placeholders allow, by which rules decide, and Matching pairs transactions with declared calls so that
// each is used once.
//
// Moves adds up what transactions take out of the treasury: native coin and, by the policy's prices, tokens. It reads
// calldata of the functions by which tokens move, also inside of other calls, and takes what a simulation showed
// (Outflows) where that is more. Whatever it cannot read or price counts as more than any value: the gate then
// demands what it demands for the largest amount.
//
// A DeniedError is the refusal of a policy or a rule, with its reasons. It is a repute.ErrInvalid and final for the
// transaction, unlike errors of a chain.
package transaction
