// Package indexer follows chains: it reads the logs of the registries, of feedback gateways and of treasuries from
// nodes and stores them.
//
// A Follower follows one chain. Each Step does one unit of work:
//
//  1. It reads the cursor from the store and, unless the next block is known to be final, the head
//     from its Source.
//  2. It fetches the next range of blocks: their logs and headers, which must be consistent with
//     each other. The prefetcher fetches later ranges meanwhile, and the rangeSizer chooses how many
//     blocks a range has.
//  3. It compares the parent of the range with the cursor. If they differ, it looks for the newest
//     common block and replaces all blocks above it in one transaction (repute.ErrReorged).
//  4. It stores events, histories, current rows and the cursor in one transaction, under a lease.
//
// Run repeats Step until its context ends. It takes the lease of the chain first, so that any number
// of processes may follow the chains of one database: all but one stand by. Failures are retried with
// growing pauses and shown in the status of the chain. Only a reorganization of final blocks and an
// endpoint of another chain end Run, because they need an operator.
//
// Treasuries are listed in the store, and read whenever the lease is acquired: chaindb.WatchTreasury adds one and ends
// the lease, so that no block is indexed without it from then on. What it emitted in blocks that were indexed before is
// a gap, which package verify reads. A chain without registries is indexed for its treasuries alone.
//
// All state is in the store: a process may be killed at any instruction, and the next one continues.
// Package archive reads and writes events as files, package verify compares what is stored with the
// chain, package documents fetches the files that the events name.
package indexer
