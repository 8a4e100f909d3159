// Package facilitator connects servers that are paid by x402 with facilitators over HTTP: a Client asks others, and
// NewHandler serves any x402.Facilitator (section 7 of the specification).
//
// A Client has the URLs of several facilitators and asks them in their order; one that failed is asked last for half
// a minute. The first answer decides. An impossible answer, such as a success without a transaction or of another
// amount, counts as no answer. Where one facilitator gave no answer to a settlement, a refusal of another does not say
// that nothing was settled: the end is unknown, and the same payment has to be settled again. A Client believes what a
// facilitator says within these bounds; x402.Confirmed believes only the chain.
//
// Requests and answers have at most 256 KiB. NewHandler answers 200 for payments that are refused, 400 for requests
// that cannot be read, and 503 with Retry-After where the same request may be sent again. It keeps no state and
// checks no caller: the program that mounts it decides who may have payments settled at the operator's cost.
package facilitator
