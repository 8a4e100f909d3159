// Package pgcopy encodes rows in the binary format of COPY, by which Postgres stores many rows fastest.
//
// A Buffer is made for a table and its columns, of which the chain is the first. Row begins a row, one call for each
// further column follows in their order, and Send stores all rows with one COPY. The types of the calls MUST be those
// of the columns: Postgres compares the number of fields and the length of some, and cannot notice a bigint in place of
// a time. Numerics of any size are encoded without going through a text of Postgres or through floating point.
//
// Rows are encoded before they are sent, so that other goroutines can encode while the connection is busy, and so that
// a slow producer never keeps a COPY open. A Buffer is not safe for concurrent use and is sent once.
package pgcopy
