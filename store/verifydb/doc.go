// Package verifydb stores what the comparison of the index with the chain found, and returns what is compared.
//
// Blocks: SaveBlockProof stores connected ranges of final blocks that were compared, with the blocks in them that could
// not be proven. Ranges join where the hash of one is the parent of the next. AskForBlocks requests that blocks are
// compared again, and SettleBlocks stores the outcome. States: SetVerified stores the block at which all agents were
// compared, per kind of event; SaveSweep stores how far a comparison came, so that another process continues it. A
// rewind takes both back (Unverify). Package chaindb computes the completeness of a chain from these rows.
//
// AgentsThen, RatingsThen and OperatorsThen return what the contracts' view functions should
// return at a block, for comparing it with what they do return. WrongTotals compares the totals of the index, which no
// view function shows, with the stored events.
//
// Every write is under the lease of the chain, except AskForBlocks, by which anybody may ask. The package compares
// nothing with a node and repairs nothing: package indexer/verify does, with importdb.
//
// Table: block_proofs; positions and requests are rows of cursors.
package verifydb
