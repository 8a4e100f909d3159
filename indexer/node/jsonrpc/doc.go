// Package jsonrpc exchanges batches of JSON-RPC calls with an HTTP endpoint.
//
// Answers are decoded while they arrive, and bounded: a process stays below its memory limit
// whatever an endpoint sends. Logs, headers and receipts, which are frequent, are read token by
// token, everything else by encoding/json. Diagnose classifies a failure: whether a smaller range, a
// pause or another endpoint helps.
package jsonrpc
