// Package exportdb reads whole sets of one chain as of a final block: agents, ratings, events, final scores and
// changes. A set is read in parts of bounded size, each by statements of its own that begin after the key at which the
// one before ended. No transaction stays open between them, so that a slow reader never keeps Postgres from vacuuming:
// the histories of final blocks do not change, and what they were at a block is the same in every snapshot of the
// database. A repair of missed events, a rebuild and the deny-list can change them; callers notice that by the hash of
// a part.
package exportdb
