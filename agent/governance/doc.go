// Package governance reads the policy.json of an agent and decides by it.
//
// Parse reads a policy strictly: JSON with comments, unknown members refused by name. The policy's
// hash is over its canonical form without the signature, so that layout and comments do not change
// it. Policy.Mode tells from the agent's own score and the clock how the agent serves, Policy.Decide
// whether one request is served, and Policy.TakeFree counts free requests. Decisions list every
// reason, with a stable code. Nothing here falls back: a rule that cannot be evaluated denies.
//
// A Loader reads the policy again when it changes and keeps the last good one.
package governance
