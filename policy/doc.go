// Package policy decides what a task may do: typed limits and thresholds, and rules in
// CEL (https://cel.dev). It is pure: what is known of the task, its agents and its
// transactions comes in, a decision with every reason goes out. Nothing here falls
// back: a rule that cannot be evaluated denies.
package policy
