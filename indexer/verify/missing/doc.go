// Package missing names events that seem to be missing from an index, and says how to look for them.
//
// A gap is the kind of the missing event, a subject that tells gaps of one kind apart, and the blocks
// in which the event must be. OfAgent, OfClient and OfOperator return gaps that a comparison of
// states found, Waiting the gap that a stored event waits for. Searches returns the filters with
// which a node is asked for the logs of a gap, or with which the bloom of a block excludes them.
// Fits reports whether the stored logs of a block are complete as far as the order of the events of
// the identity registry shows.
package missing
