// Package docdb keeps documents: the queue of URIs by host, the bytes that were fetched with
// the blocks that prove them, what parsers made of them, the proofs of domains, and the claims
// of payments. It also interns the strings of events, because a new URI is a new document.
package docdb
