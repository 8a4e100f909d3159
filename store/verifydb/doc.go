// Package verifydb keeps what comparing the index with the chain found: blocks that are proven,
// blocks that are not and why, how far the comparison came, and the state as of a block to
// compare with.
package verifydb
