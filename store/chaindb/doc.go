// Package chaindb stores chains: their configuration, cursor and head, the ranges of blocks
// that are indexed, the events known to be missing, and the health of RPC endpoints.
//
// A chain is added once with AddChain and then followed by the process that holds its lease.
// Every write of its rows begins with LockChain, which keeps other writers out; readers are
// never blocked. WatchTreasury adds a contract to those that are indexed, which ends the lease. SetHead
// stores what the node reports about the head, and eventdb moves the
// cursor.
//
// Answers are read with View or ViewAgent: one read-only snapshot, in which ReadChains returns
// each chain with its freshness and its completeness. Completeness combines three sources: gaps
// (OpenGaps), pending events, and the blocks that were compared with the chain (package
// verifydb).
//
// Tables: chains, blocks, gaps, endpoints.
package chaindb
