// Package apibench measures how fast the API answers over a full index: the product in a process of its own, beside a
// bare handler that returns a constant, on a private Postgres.
//
// Run measures requests of every kind, streams, webhooks and indexing beside requests, and RunPages the pages of the
// dashboard. Both begin with fill, which lets the database make the rows of an index: it takes a fraction of the time
// of indexing the same events. The answers MUST be about other agents each time where the cache of answers is not what
// is measured. Requests come from conn, a client that costs less than that of net/http, because server and client share
// the processors. A request that is refused counts as the longest time that the benchmark waits, so that it misses
// every target.
package apibench
