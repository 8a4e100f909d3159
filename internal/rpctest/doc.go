// Package rpctest is a scripted EVM chain served over real JSON-RPC, for tests.
//
// Blocks have real header hashes, parents, blooms and receipt roots. A fork is
// two lines: Fork(at) and Mine(...). Any answer can be delayed, replaced,
// refused or lied about with Inject and MapLogs. Test files only may import it.
package rpctest
