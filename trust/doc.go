// Package trust computes how far an agent can be trusted, and why.
//
// The package is pure. Graph.Walk lets trust flow from roots to raters, and Score turns the
// evidence about one agent into a score with bounds, gates and an explanation. Both use
// integers only and a fixed number of steps, so the same input gives the same bytes on
// every machine and in every order. No clock is read: ages end at the time of a block.
// Package trust/engine keeps the scores stored.
//
// Three rules make a score expensive to buy. A rater's weight is the trust that flows to it
// from the roots. All raters without such weight together count for half a unit. Neither
// the good nor the bad side of an agent's evidence counts for more than the number of
// vertex-disjoint paths from roots to its raters. See docs/explanation/trust.md.
//
// Use it in three steps. ParseParams or DefaultParams gives the parameters. GraphBuilder
// collects who rates whom well, and Graph.Walk returns the Weights of all raters. Score takes
// an Evidence, which holds those Weights and the records about one agent, and returns a
// Result. A scorer of NewScorer saves work when many agents are scored with the same Weights.
//
// Manifest lists the inputs of a score other than events, parameters and roots. Its hash is
// stored with the score, so that the score can be replayed. A replay that needs an input
// that is no longer stored fails with a *PrunedError.
package trust
