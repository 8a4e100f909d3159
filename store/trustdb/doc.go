// Package trustdb reads what the trust engine works with: the events of a chain in the form that package trust
// computes with, as of any block, so that scores can be explained and replayed.
//
// ReadSubjects returns the evidence about some agents. ReadSnapshot reads all agents and ratings of a chain in one
// transaction, for the graph of who rates whom. The package writes nothing; package store/scoredb stores the results.
package trustdb
