// Package policy decides what a task may do: typed limits and thresholds, and rules in
// CEL (https://cel.dev). It is pure: what is known of the task, its agents and its
// transactions comes in, a decision with every reason goes out. Nothing here falls
// back: a rule that cannot be evaluated denies.
//
// Parse reads a policy from YAML; its error is repute.ErrInvalid and names the key. A Policy
// answers three questions. Policy.Gate compares an Agent's trust with the thresholds of the
// policy and the task. Policy.Decide evaluates limits and rules over an Input: before the
// work in phase policy, and for each transaction in phase call. Policy.Budget gives the
// limits of a task. The first two return a Decision: its Effect is the strongest of all
// Reasons, and neither of them has an error.
//
// ForPayments returns the built-in policy that the API's decisions use.
//
// What is unknown never allows anything: an amount that is no number, a rule that exceeds its cost, a token without a
// price and a bound that cannot be read all lead to Deny, or count for more than every threshold. An Agent whose Status
// is neither StatusRated nor StatusThin counts as unrated, also where the field is empty.
//
// A policy is identified by the sha256 of its bytes (Policy.Hash), comments included. A decision can be repeated from
// the text (Policy.Text) and the Input: it depends on nothing else, not even on the time.
package policy
