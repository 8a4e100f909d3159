// Package importdb changes indexed chains in other ways than block by block.
//
// Import merges recorded logs into an imported chain; Repair and Amend insert or replace late
// logs of a followed one. All three store the events and fold the affected agents again from
// their events, because late events may change everything after them. Reindex builds all
// histories and current rows of a chain in temporary tables and then replaces the stored ones.
//
// ReadSnapshot exports the events of a chain, and Resume follows an imported chain on from its
// end. Dump writes events, histories and current rows in a canonical form: two indexes of the
// same chain have the same dump, which tests and operators compare.
//
// It writes the tables of package eventdb.
package importdb
