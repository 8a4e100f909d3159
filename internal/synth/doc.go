// Package synth makes a deterministic ERC-8004 history and serves it as a node would, fast enough to be no
// bottleneck of a benchmark. Equal specs give equal bytes. Nothing of a history exists on any real chain.
//
// A generator draws what happens next, keeps the state that results, and leaves the logs that the contracts
// would leave. Accounts, texts and hashes follow from small numbers, so that the state of
// millions of events fits in memory. A writer seals the blocks and writes the files of a History:
//
//   - the logs as JSON lines in order, so that eth_getLogs over a range is a slice of a file that the kernel
//     sends by itself;
//   - the blocks, each of one size, so that one is found by its number;
//   - the final state, and a description that is written last: a directory that has one is whole.
//
// Open builds a history into a directory of its own, or opens the one that is there. NewServer answers as a node
// of the history: blocks, logs and receipts of any block, and the registries' views at the end of the history
// alone, because only the final state is kept. LoseLogs makes the server leave out logs as careless nodes do.
//
// WriteDump writes the canonical dump that a correct index of the history must equal. It is computed from the
// state of the generator, which follows the contracts, and not from the logs: a fault of the decoder or of the
// index cannot be in both.
package synth
