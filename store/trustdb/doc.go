// Package trustdb keeps what the trust engine works with: roots and links, runs and their
// inputs, the agents whose scores are stale, scores and penalties; and reads the graph and
// the evidence of a chain.
package trustdb
