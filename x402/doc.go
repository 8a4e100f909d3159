// Package x402 implements the payment protocol x402, versions 1 and 2, for EVM chains: its objects and
// HTTP headers, the schemes exact and upto, facilitators, and the extensions payment-identifier,
// offer-receipt and bazaar. Section numbers in comments are those of the x402 specification,
// version 2.0 of 2025-12-09, unless another document is named.
//
// A server that wants to be paid answers 402 with a Demand. One answer serves clients of both
// versions, and those of the Agent Runtime Specification. The client signs one of the demanded
// Requirements (Pay) and repeats its request with the Payment in a header (PaymentOf). A
// Facilitator verifies the payment and settles it on the chain: a Local verifies by itself and has a
// Settler send the transaction. Package x402/facilitator asks others over HTTP, and serves any of them.
//
// The package keeps no state. A Settler MUST send the transaction of a Transfer once per
// Transfer.ID, however often it is asked, or payers would be charged for gas in vain and callers
// would not get the same answer twice.
//
// Decoders take untrusted bytes: headers have at most MaxHeader bytes, amounts are exact decimal digits below 2^256,
// and what a payment says of its price is only compared, never used.
package x402
