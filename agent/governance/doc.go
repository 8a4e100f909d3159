// Package governance reads the policy.json of an agent and decides by it.
//
// Parse reads a policy strictly: JSON with comments, unknown members refused by name. The policy's hash is over its
// canonical form without the signature, so that layout and comments do not change it. Policy.Mode tells from the
// agent's own score and the clock how the agent serves, Policy.Decide whether one request is served, and
// Policy.TakeFree counts free requests. Decisions list every reason, with a stable code; of several effects the
// strongest counts. Nothing here falls back: a rule that cannot be evaluated denies.
//
// Scores have bounds. Rules that admit read the lower bound; rules that refuse read the upper bound. With little
// evidence neither applies. An own score that is older than MaxScoreAge changes no mode.
//
// A Policy does not change and is safe for concurrent use. A Loader reads it again when it changes, from a file or an
// https URL, and keeps the last good one. It verifies the owner's signature each time, since an agent can be sold,
// and refuses a signed policy that is older than one that was in force: the server of the file could bring back rules
// that the owner replaced. What it remembers of that is in a History, for all processes of the agent.
package governance
