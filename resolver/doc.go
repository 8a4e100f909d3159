// Package resolver turns a URI written on chain into bytes. It reads data: URIs,
// bare JSON, https and ipfs; it never trusts what it reads: addresses are checked
// when they are dialed, sizes and times are bounded, and every ipfs block is
// verified against its CID. It has no database and does not interpret documents.
//
// A failure is always an *Error with one of the closed list of reasons below, so
// that a caller can store the reason and decide when to try again.
//
// New returns a Client, which is safe for concurrent use. Client.Fetch returns a Document;
// Client.FetchIfChanged lets an https server answer that nothing changed. Classify says how
// a URI would be read without reading it, and Inline decodes a document that the URI itself
// contains. Guard is the check of addresses by itself, for other requests to hosts that
// strangers named.
package resolver
