// Package trust computes how far an agent can be trusted, and why.
//
// The package is pure. Package trust/flow lets trust flow from roots to raters, and Score turns
// the evidence about one agent into a score with bounds, gates and an explanation. Both use
// integers only and a fixed number of steps, so the same input gives the same bytes on
// every machine and in every order. No clock is read: ages end at the time of a block.
// Package trust/engine keeps the scores stored.
//
// Three rules make a score expensive to buy. A rater's weight is what it receives from several
// who have weight themselves, the roots first. All raters without weight together count for
// next to nothing. Neither the good nor the bad side of an agent's evidence counts for more than
// what flows from roots to its raters where nobody passes more than one unit. See
// docs/explanation/trust.md.
//
// Use it in three steps. Package trust/rating reads the parameters. Package trust/graph
// collects who rates whom well, and the Walk of package trust/flow returns the weights of all
// raters. Score takes an Evidence, which holds those weights and the records about one agent,
// and returns a Result. A Scorer saves work when many agents are scored with the same weights,
// and a Ledger holds the records of all agents of a chain for one pass over them.
//
// Package trust/fixed has the numbers, trust/flow weights and paths, trust/accountable who answers
// for an agent, and trust/replay the inputs that are stored so that a score can be computed again.
package trust
