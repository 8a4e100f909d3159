// Package feed follows the change feed for the streams of a process: one reader of the table serves them all. What it
// read last is kept for a while, so that a stream that keeps up costs no statement. A stream that falls further behind
// reads the table itself, page by page, and nothing is buffered for it.
package feed
