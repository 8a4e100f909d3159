// Package bulk has the commands that work on many rows or callers: `repute export` downloads whole sets of a chain from
// a server, `repute export load` loads them into ClickHouse, and `repute apikeys` keeps the keys that raise the limits
// of callers.
//
// A download is a directory for each set, with the manifest of the server and the parts that the manifest names. It can
// be broken off at any moment: a part gets its name only when its bytes have the hash of the manifest, what was fetched
// of one is kept as .partial and continued by a range request, and the same command goes on with what is missing. All
// sets of a command are of one final block. Where the server can no longer make the bytes of a manifest, the newest
// manifest is taken in its place, once, and parts that both have stay.
//
// Loading is idempotent in the same way: the table repute_parts lists the parts that were inserted, and a part that a
// crash inserted twice changes nothing that a query with FINAL sees.
//
// The server and ClickHouse are asked over HTTP. Their answers are bounded, and errors never quote a URL that may hold
// a password.
package bulk
