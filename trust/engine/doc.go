// Package engine keeps the scores of package trust stored and up to date.
//
// An Engine follows the indexed chains. At the end of each epoch it builds the graph of ratings, lets trust flow from
// the roots, and scores every agent concerned; between epochs an event marks its agents as stale and they are scored
// again by the newest epoch's weights. Any number of engines may share a database.
//
// Package trust/explain answers questions about the stored scores.
package engine
