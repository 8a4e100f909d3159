// Package graph makes the graph through which trust flows of ratings: it has an edge from each address that rated an
// agent well to the agent's owner.
//
// Reader collects agents and ratings and builds the flow.Graph; the Walk of package trust/flow then returns the weights
// of all raters. Where raters write tags on several scales, Survey, Measure and Settle are called before Rating.
// Ratings of all agents of a chain are added by PackedOwners, on all processors. With the weights, Coverage counts
// which ratings count and why others do not, and Credited adds what sources and reviews of writers give to raters.
//
// The package is pure: the same input gives the same graph on every machine and in every order.
package graph
