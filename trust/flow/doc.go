// Package flow lets trust flow from roots to raters, and counts the independent paths it takes.
//
// A GraphBuilder collects who vouches for whom; Build turns addresses that are known to belong
// together into one Node, an identity, and gives each edge its share of the giver's trust. The
// resulting Graph depends on neither the order of insertion nor the machine.
//
// Graph.Walk spreads trust: in a fixed number of rounds every identity passes on what it has,
// but for a share that starts again at the roots. The Weights it returns tell for each identity
// how much reached it, compared with a middle root, and who vouches for it on a shortest path.
// Graph.Personal does the same for roots of a caller.
//
// A PathFinder counts vertex-disjoint paths from roots to groups of raters, so that many raters
// behind one identity count as one path.
//
// Most of the time of an epoch goes into the walk. edgeBlocks orders the edges so that memory
// is read nearly in sequence; sums of whole numbers do not depend on the order, so the parts
// run on all processors and the result is the same.
package flow
