// Package node asks the JSON-RPC endpoints of a chain and checks what they answer.
//
// A Node is one endpoint. Each request passes its limit.Limiter, which holds requests back
// that the endpoint has shown it cannot take, and the client of package jsonrpc, which
// bounds and decodes the answer. A Pool asks the endpoints of one chain as if they were
// one: it prefers those that answer quickly and correctly, and moves on to the next when
// one fails or does not have what is asked.
//
// No answer is believed because it came. Span.Check compares logs with headers, Agreed
// compares endpoints with each other, and Receipts returns Evidence whose root is
// recomputed, which needs no trust.
package node
