// Package importdb changes indexed chains in other ways than block by block.
//
// # Late events
//
// Import merges recorded logs into an imported chain; Repair and Amend insert or replace late
// logs of a followed one. All three store the events and fold the affected agents again from
// their events, because late events may change everything after them. The affected agents are those that the events
// name, and those whose validation requests the events may displace. A merge is one transaction; events are read
// through a cursor and folded in chunks of whole blocks, so that memory is bounded.
//
// # Rebuild
//
// Reindex builds all histories and current rows of a chain in temporary tables, while the chain is read and indexed,
// and then replaces the stored rows in one transaction. It changes nothing where the chain was rewound meanwhile.
// Merges and Reindex exclude each other by an advisory lock.
//
// # Files
//
// ReadSnapshot exports the events of a chain, and Resume follows an imported chain on from its
// end. Dump writes events, histories and current rows in a canonical form, by natural keys and without clocks: two
// indexes of the same chain have the same dump, which tests and operators compare.
//
// It writes the tables of package eventdb, by whose fold all rows are made.
package importdb
