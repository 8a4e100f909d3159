// Package jsonrpc exchanges batches of JSON-RPC calls with an HTTP endpoint.
//
// Answers are decoded while they arrive, and bounded: a process stays below its memory
// limit however much an endpoint sends. Logs, headers and receipts, of which there are
// many, are read token by token, everything else by encoding/json. Judge says what a
// failure means: whether a smaller range, a pause or another endpoint helps.
package jsonrpc
