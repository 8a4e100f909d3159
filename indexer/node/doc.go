// Package node sends requests to the JSON-RPC endpoints of a chain and checks their answers.
//
// A Node is one endpoint. Each request passes its limit.Limiter, which delays requests that the
// endpoint is known to refuse, and the client of package jsonrpc, which bounds and decodes the
// answer. A Pool treats the endpoints of one chain as one source: it prefers endpoints that answer
// quickly and correctly, and continues with the next one when a request fails or the endpoint does
// not have the data. All readers of a chain in a process share one Pool: the indexer, the readers of
// trust sources, payments and the treasury, and the wallet. First and Each let a reader make other
// calls, with failover or for a comparison of the answers.
//
// No answer is trusted unchecked. Span.Check compares logs with headers, Agreed compares endpoints
// with each other, and Receipts returns Evidence whose root is recomputed, which needs no trust.
package node
