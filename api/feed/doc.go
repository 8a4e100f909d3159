// Package feed follows the change feed for the streams of a process: one reader of the table serves them all, from the
// first follower on until the last one leaves. What it read last is kept for a while, so that a stream that keeps up
// costs no statement. A stream that falls further behind reads the table itself, page by page, and nothing is buffered
// for it.
//
// A follower gets each change that its filter selects, once and in the order of the feed, and with each batch the
// cursor after which it continues elsewhere. A change is sent within 200 milliseconds after the transaction that wrote
// it could be seen; changes of another process too, because the table is what is read. Final changes, which no
// reorganization undoes, are read from the table once a second.
//
// While the database is unavailable, followers that keep up wait, and continue where they were. Those that read the
// table themselves, because they begin, lag or ask for final changes, end with its error and may follow again from
// their cursor.
package feed
