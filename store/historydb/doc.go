// Package historydb answers how an agent changed over time: the history of what the Identity Registry says of it
// (History), and series of its ratings, its reviewers and its final scores in buckets of an hour, a day or a week
// (ReadSeries).
//
// Both come from the histories of package eventdb and from the final scores of package scoredb, as of any block, so
// that a reorganization removes what it took back. Functions for one agent and for many agents share one statement,
// which is sent once however many agents there are.
//
// A history is by block: of several changes of one value within a block, the last one counts. Ratings whose block has
// no known time are in no bucket; Undated counts them. A final score is stored when it differs from the one before, so
// a bucket without one carries the last score on, unless scores in between may have been pruned.
//
// It only reads; the tables belong to other packages.
package historydb
