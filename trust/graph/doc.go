// Package graph builds the trust graph from ratings: it has an edge from each address that rated an agent well to the
// agent's owner.
//
// A Reader collects agents and ratings and builds the flow.Graph; the Walk of package trust/flow then returns the
// weights of all raters. The calls have an order. Agent and Former, or Owner for an agent that never had another one,
// come before all ratings. Where raters write tags on several scales, Survey and Measure see all ratings once each, and
// Settle then fixes the scale of every rater. Ratings are added one by one by Rating, or those of all agents of a chain
// by PackedOwners, on all processors; both give the same graph. Build ends the collection.
//
// An owner and its verified wallet are one identity, as are linked addresses. Of several ratings of one owner's agents
// by one rater their mean decides: a positive one makes one edge, so praise of many agents of one owner weighs no more
// than of one. Praise from before the owner got an agent is not about the owner.
//
// With the weights, Coverage counts which ratings count and why others do not, and says how many known agents each
// identity has, by which penalties are shared out. Credited adds what sources and reviews of writers give to raters.
// The Reader keeps eight bytes of each rating for both.
//
// The package is pure: the same input gives the same graph and the same counts on every machine, in every order and on
// any number of processors. A Reader is for one goroutine.
package graph
