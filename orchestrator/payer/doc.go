// Package payer pays for answers of HTTP servers by x402, if the party that is paid is trusted.
//
// A server that demands payment names an account. The payer finds the agent behind it in the
// index, over the index's HTTP API as any runtime would, and refuses an agent whose score is below
// the threshold, and an account that belongs to no agent it can name. What is paid is bounded per
// call, per host and per day. Each purchase is stored before its payment is sent, and a request
// whose answer is lost is repeated with the same payment: it is not paid twice.
package payer
