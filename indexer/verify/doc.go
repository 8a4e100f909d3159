// Package verify finds events that an index lacks, and stores them.
//
// A Verifier works behind the cursor of one chain. It compares the stored state of every agent
// with the chain's, and every final block with its receipts, its bloom or the logs that two hosts
// show. What it cannot find is published as a gap, what it cannot prove as unproven. All progress
// is in the store: a Verifier may end at any instruction, and another one continues.
package verify
