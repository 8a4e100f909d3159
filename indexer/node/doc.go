// Package node sends requests to the JSON-RPC endpoints of a chain and checks their answers.
//
// A Node is one endpoint, over HTTP or a WebSocket. Each request passes its limit.Limiter, which delays requests
// that the endpoint is known to refuse, and the client of package jsonrpc, which bounds and decodes the answer. A
// batch is split where the endpoint takes fewer calls. No error of a Node contains a path or a key of its URL.
//
// A Pool treats the endpoints of one chain as one source: it prefers endpoints that answer quickly and correctly,
// and continues with the next one when a request fails or the endpoint does not have the data. All readers of a
// chain in a process share one Pool: the indexer, the readers of trust sources, payments and the treasury, and
// the wallet. First and Each let a reader make other calls, with failover or for a comparison of the answers.
// Run keeps subscriptions to new heads, probes endpoints that are idle or failed, and stores their health; a
// Pool answers without it too. An endpoint of another chain is excluded until it serves the right one.
//
// No answer is trusted unchecked:
//
//   - Span.Check compares logs with headers: places, order, hashes, blooms and what was asked for.
//   - Agreed compares the headers of several endpoints, and Heads calls a block final that two hosts call final.
//     A host is a name or an IP address: all its ports are one witness.
//   - Receipts returns Evidence. If its root is the one that a recomputed header commits to, it needs no trust.
//
// A Query asks for a range in one of two ways. Far below the head, logs are asked for by numbers, with the
// headers of both ends. Near the head (Linked) every header is asked for, and the logs of a few blocks by the
// hash of each, because the numbers may mean another fork by then.
//
// Nodes and Pools are safe for concurrent use and connect at the first request. Close ends the connections.
package node
