// Package intentcall acts on an intent of an agent.json: it fetches the manifest of a domain, checks arguments
// against it, and calls the endpoint, which MUST be of the domain itself.
//
// Find reads the manifest and returns a Plan. Plan.Request makes the request of checked arguments, and Plan.Limit the
// most that may be paid for it. Call sends the request by a Sender: Free, which pays nothing, or a payer.Payer. The
// command line uses these steps one by one; agents of the orchestrator call Context.Intent, for which a Planner makes
// the first of them and the runtime sends the request itself.
//
// What an intent may cost is the caller's decision: an intent with a price is not called without a bound, and a price
// that the manifest states is the most that is paid. No redirect is followed, because it would leave what the
// manifest names.
//
// An intent without an endpoint says what to do in words. They are untrusted text, and are returned as such: data, and
// no orders to a model.
package intentcall
