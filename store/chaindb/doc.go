// Package chaindb stores chains: their configuration, cursor and head, the ranges of blocks
// that are indexed, the events known to be missing, and the health of RPC endpoints.
//
// # Writing
//
// A chain is added once with AddChain and then followed by the process that holds its lease (LeaseName). Every
// transaction that changes rows which a batch depends on begins with LockChain, which keeps other writers out and
// counts the write; readers are never blocked. HoldChain locks without counting, for transactions that do not change
// such rows. A transaction that takes the lease and the row takes the lease first, so that two cannot wait for each
// other.
//
// SetHead stores what the node reports about the head, and eventdb moves the cursor. WatchTreasury adds a contract to
// those that are indexed. It revokes the lease, so that no batch is stored whose logs were fetched without the
// contract.
//
// # Reading
//
// Answers are read with View or ViewAgent: one read-only snapshot, in which ReadChains returns each chain with its
// freshness and its completeness. A View takes at most 15 seconds. A caller who must see a block says so with
// WithMinBlock, and every View of that context waits for it. Subject is an agent that exists at the block that was
// asked for; statements about it take Subject.Key as $1 to $3. For the newest state the block is Everything, at which
// the open rows of the histories are the current ones.
//
// # Completeness
//
// Completeness says what the index knows to be missing, for each kind of event. It combines three sources: gaps
// (OpenGaps), pending events, and the blocks that were compared with the chain (package verifydb). A chain is complete
// only where all three are clean from its first block to its cursor. A contract that is listed after blocks were
// indexed leaves a gap in them (AddHistoryGaps).
//
// Tables: chains, blocks, gaps, endpoints.
package chaindb
