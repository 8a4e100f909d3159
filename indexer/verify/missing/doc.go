// Package missing names events that seem to be missing from an index, and says how to look for them. It does no I/O.
//
// A gap is the kind of the missing event, a subject that tells gaps of one kind apart, and the blocks in which the
// event must be. OfAgent, OfClient and OfOperator return gaps that a comparison of states found, Waiting the gap that
// a stored event waits for. Kind and subject are the identity of a gap, in the store too: the same contradiction found
// twice is one gap.
//
// Searches returns the filters with which a node is asked for the logs of a gap. The same filters say whether the
// bloom of a block excludes them (May), which finds the block where a node answers log queries badly. They find more
// than the one event, because what was lost together is found together.
//
// Fits reports whether the stored logs of a block are complete as far as the order of the events of the identity
// registry shows. It decides only which blocks are looked at again.
package missing
