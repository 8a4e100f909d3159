// Package trust computes how far an agent can be trusted, and why.
//
// Its core is pure: Graph.Walk spreads trust from roots to raters, and Score turns the
// evidence about one agent into a score with bounds, gates and an explanation. Both use
// integers only and fixed numbers of steps: the same input gives the same bytes on
// every machine and in every order. There is no clock: age runs to the time of a block.
//
// What makes a score dear to buy: a rater weighs what flows to it from the roots, all
// raters without such weight count for half a unit together, and no side of an agent's
// evidence counts for more than the vertex-disjoint paths that lead from roots to its
// raters. See docs/trust.md.
package trust
