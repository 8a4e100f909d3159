// Package rootdb stores sets of roots: the addresses that an operator trusts without anybody's word, and the reviewed
// writers, with their weights and reasons. It also stores links, the pairs of addresses that are known to be one
// identity.
//
// The trust engine reads both when it begins a run and stores them with the run's inputs, so that a change applies from
// the next run on, and a stored score can be computed again with the roots of its time. A chain has any number of sets;
// repute.DefaultRoots is the one that its own scores follow from, and others are for callers who score by their own.
//
// Changes are for operators and rare: one transaction at a time changes roots and links, and stores all of a list or
// nothing. CheckRoot and CheckLink say what can be stored; a caller that reads a file calls them first, so that an
// error names the entry. An expired root stays stored until it is removed, and counts no more.
//
// Tables: trust_roots and trust_links.
package rootdb
