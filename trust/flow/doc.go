// Package flow lets trust flow from roots to raters, and measures how much of it is independent.
//
// A GraphBuilder collects who vouches for whom; Build turns addresses that are known to belong
// together into one Node, an identity, and gives each edge its share of the giver's trust. The
// resulting Graph depends on neither the order of insertion nor the machine.
//
// Graph.Walk spreads trust from the roots in two ways. Mass is the share of all trust that reaches
// an identity. Weight is how much the identity's opinions count; it needs praise by several. The
// Weights that Walk returns have both, and a shortest path from a root to each identity.
// Graph.Personal does the same for roots of a caller.
//
// A PathFinder measures how much weight reaches groups of raters independently: a maximum flow in
// which no identity passes more than one unit, so that many raters behind one identity count as one.
//
// Most of the time of an epoch goes into the walk. edgeBlocks orders the edges so that memory
// is read nearly in sequence; sums of whole numbers do not depend on the order, so the parts
// run on all processors and the result is the same.
package flow
