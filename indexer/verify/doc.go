// Package verify finds events that an index lacks, and stores them.
//
// A node that leaves logs out of an answer says nothing about it. So a Verifier works behind the
// cursor of one chain and compares what is stored with the chain. It has four tasks, which Step
// does in turn while there is anything to do:
//
//   - checkStart looks once whether the registry is older than the first indexed block.
//   - settleNext takes one known gap, searches what it lacks (locate) and closes it, or postpones
//     the next try.
//   - sweepAgents compares stored agents with the views of the contracts at a final block, by
//     package state. A difference becomes a gap once a second comparison shows it too.
//   - sweepBlocks goes through the final blocks. A block is proven by receipts whose root its
//     header names, by a bloom that excludes our events, or by the logs that two hosts show.
//
// An inquiry asks the witnesses about one block, and its judgment says which logs are missing,
// which are stored in error and how sure that is. Nothing is repaired without a judgment.
// storeMissing puts missing events in their place, and amend replaces those of a block. What is
// not found stays published as a gap, and blocks that nothing proves as unproven.
//
// Check does the same comparison for a range on demand, and Report hands what it found to the
// process that holds the chain's lease.
//
// All progress is in the store: a Verifier may end at any instruction, and another one continues.
// Package missing names gaps and the log filters that find them, witness has the endpoints that
// may be asked, and unchecked lists what a Check could not compare.
package verify
