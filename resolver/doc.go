// Package resolver turns a URI written on chain into bytes. It reads data: URIs,
// bare JSON, https and ipfs; it never trusts what it reads: addresses are checked
// when they are dialed, sizes and times are bounded, and every ipfs block is
// verified against its CID. It has no database and does not interpret documents.
//
// A failure is always an *Error with one of the closed list of reasons below, so
// that a caller can store the reason and decide when to try again.
//
// New returns a Client, which is safe for concurrent use. Client.Fetch returns a Document;
// Client.FetchIfChanged lets an https server answer that nothing changed, and Client.FetchWithin bounds a fetch
// further. Classify says how a URI would be read without reading it, and Inline decodes a document that the URI itself
// contains. Guard is the check of addresses by itself, for other requests to hosts that strangers named.
//
// # What bounds a fetch
//
// One fetch takes at most Options.Timeout, with all redirects or all gateways together. A body over the limit is an
// error, never a part of the document. Compressed bytes are inflated only as far as the limit, and given up when they
// inflate too much. A body that makes almost no progress is given up too, because a few slow servers would otherwise
// occupy all workers. Panics of decoders on untrusted blocks are errors of the document.
//
// # The guard
//
// A URL is checked by its text before the request and before each redirect, and the address again when it is dialed,
// after the name was resolved: neither DNS nor a redirect leads into a private network. HTTP/2, proxies and cookies
// are off.
//
// # Gateways of ipfs
//
// No gateway is trusted. Each block is compared with its CID, and the blocks that prove a document are returned with
// it, so that they can be served to others. Gateways are asked one after the other, the next one also when the one
// before takes long. One that failed is asked last for a while, for the longest when it gave wrong bytes; that is known
// in memory only. A URL on a public gateway is read as the CID that it names.
package resolver
