// Package jsonrpc exchanges batches of JSON-RPC calls with an HTTP endpoint, and says what a failure means.
//
// Client.Send writes a batch and decodes the answer while it arrives, so that the text of an answer is never held
// whole. Logs, headers and receipts, which are frequent, are read token by token into the elements of the batch,
// everything else by encoding/json. What an endpoint sends is bounded: the whole answer, one text in it, and how
// many large answers are read at the same time. A process stays below its limit of 250 MB whatever it is sent.
// Redirects are not followed, because they would send the key in the path to another host.
//
// The errors of single calls are in their elements; the error of Send concerns the whole batch. Diagnose
// classifies both by their remedy, a Fault: whether a shorter range, a pause or another endpoint helps. Providers
// use JSON-RPC codes with several meanings each, so that the text of a refusal decides before its code. A refusal
// that nothing recognizes counts as a range too large: a shorter range is the only thing that a reader can try.
//
// A Header carries the hash that its endpoint names and the one that follows from its fields. ReceiptsRoot
// computes the root of receipts. Where they are equal to what a header commits to, an answer needs no trust.
//
// Redactor removes from texts what may be a key in an endpoint's URL: every text that leaves package node passes it.
package jsonrpc
