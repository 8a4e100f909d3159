// Package devnet runs a real Ethereum node inside the process, for tests and for the demo: go-ethereum on an
// in-memory chain with JSON-RPC over HTTP and WebSocket, the three registries deployed, and blocks,
// reorganizations and finality on demand. It is the only package that imports go-ethereum's node.
//
// Start returns a Devnet. A Batch collects transactions of the registries, or any others, and its Mine makes one
// block of them; Devnet.Mine makes a block of what came in over JSON-RPC. Blocks made on demand have times that
// follow from their number, so that the same calls give the same hashes. SetPeriod makes blocks by the clock
// instead. The safe and the finalized block follow the head at fixed depths.
//
// Fork begins a branch below the head, blocks then extend it unseen, and Publish makes it the chain. Reorg and
// Forget do all of that in one step. A View reads the state of the registries at a block through their own view
// functions: it is the truth that an index is compared with.
//
// Documents is a server of files: pages over HTTPS and a trustless IPFS gateway, which can also lose a file or
// answer with other bytes than the identifier says. Package population fills a Devnet with agents and documents.
//
// All methods of a Devnet may be used by several goroutines: one lock makes a block one step. Its keys are
// derived from a public seed and MUST NOT be used on another chain.
package devnet
