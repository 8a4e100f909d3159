// Package intentcall acts on an intent of an agent.json: it fetches the manifest of a domain, checks arguments against
// it, and calls the endpoint, which MUST be of the domain itself. What an intent may cost is the caller's decision: an
// intent with a price is not called without a bound, and a price that the manifest states is the most that is paid.
//
// An intent without an endpoint says what to do in words. They are foreign text, and are returned as such.
package intentcall
