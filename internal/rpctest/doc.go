// Package rpctest is a scripted EVM chain served over real JSON-RPC, for tests. Test files only may import it.
//
// A Chain mines blocks of any logs. Blocks have real header hashes, parents, blooms and receipt roots, so that
// whatever a reader proves of a chain can be proven. A fork is two lines: Fork(at) and Mine(...); the blocks that
// it replaces stay known by hash, as on a real node. Second serves the same chain by another host, 127.0.0.2 and so on,
// because another port is no second witness (see package indexer/node).
//
// Faults are injected while the chain is served. Inject answers a call with something else, late or never.
// MapLogs changes the logs that eth_getLogs returns: Drop, Duplicate and Corrupt are such changes. ServeHead makes
// the node lag, GoDark closes every connection. All of this is of package chainserver, whose types rules use.
//
// A Proxy stands before an honest node of any kind, also a devnet, and loses logs or lies about whole answers:
// InReceipts, IndexesPlus and Inventing are lies that a reader must notice.
package rpctest
