// Package resolver turns a URI written on chain into bytes. It reads data: URIs,
// bare JSON, https and ipfs; it never trusts what it reads: addresses are checked
// when they are dialled, sizes and times are bounded, and every ipfs block is
// verified against its CID. It has no database and does not interpret documents.
//
// A failure is always an *Error with one of the closed list of reasons below, so
// that a caller can store the reason and decide when to try again.
package resolver
