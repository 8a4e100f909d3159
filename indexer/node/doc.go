// Package node asks chains' nodes over JSON-RPC and trusts none of them.
//
// A Node is one endpoint: bounded, metered, and left alone for a while when it fails.
// A Pool is the endpoints of one chain behind the questions of a single one. What they
// answer is checked to hold together; Receipts give the Evidence that needs no trust.
package node
