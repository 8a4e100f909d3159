// Package verify finds what an index lacks, and puts it in its place.
//
// A Verifier follows behind the cursor of one chain. It compares the state of every
// agent with the chain's own, reads the receipts of blocks that may hold more than is
// stored, and asks several endpoints where none can prove what it says. What stays
// missing is published as a gap. All that matters is in the store: a Verifier may end
// at any instruction, and another goes on.
package verify
