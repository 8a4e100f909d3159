// Package synth makes a deterministic ERC-8004 history and serves it as a node
// would, fast enough to be no bottleneck of a benchmark. A history is built once
// into a directory: the logs as JSON in order, so that eth_getLogs over a range
// is a slice of a file, an index of the blocks, and the final state. From the
// state the package answers contract calls and writes the canonical dump that a
// correct index of the history must equal.
//
// Equal specs give equal bytes. Nothing of a history exists on any real chain.
package synth
