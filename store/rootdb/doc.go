// Package rootdb stores sets of roots: the addresses that an operator trusts without anybody's word, and the reviewed
// writers, with their weights and reasons. It also stores links, the pairs of addresses that are known to be one
// identity. The trust engine reads both when it begins a run and stores them with the run's inputs, so that a change
// applies from the next run on.
//
// Tables: trust_roots and trust_links.
package rootdb
