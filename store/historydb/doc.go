// Package historydb answers how an agent changed over time: the history of what the Identity Registry says of it, and
// series of its ratings, its reviewers and its final scores in buckets of an hour, a day or a week.
//
// Both come from the histories of package eventdb and from the final scores of package scoredb, as of any block, so
// that a reorganization removes what it took back. Functions for one agent and for many agents share one statement,
// which is sent once however many agents there are.
//
// It only reads; the tables belong to other packages.
package historydb
