// Package exportdb reads whole sets of one chain as of a final block: agents, ratings, events, final scores and
// changes.
//
// Resolve picks the block, and the run of the trust engine whose scores belong to it. A Set is one of the sets with the
// type of its rows; Part reads the rows after a key, up to bounds that depend on the rows alone, so that the same part
// has the same bytes whenever it is read. Rows are in the order of their keys, and a key is a text that only the set
// understands (CheckKey).
//
// Each part is read by statements of its own that begin after the key at which the one before ended. No transaction
// stays open between them, so that a slow reader never keeps Postgres from vacuuming: the histories of final blocks do
// not change, and what they were at a block is the same in every snapshot of the database. A repair of missed events, a
// rebuild and the deny-list can change them; callers notice that by the hash of a part.
//
// The tags of the types of rows are the schema of the exported files. It only reads; the tables belong to other
// packages.
package exportdb
