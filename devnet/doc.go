// Package devnet runs a real Ethereum node inside the process: go-ethereum on an
// in-memory chain with JSON-RPC over HTTP and WebSocket, the three registries
// deployed, and blocks, reorganizations and finality on demand. It also serves
// documents over HTTP and IPFS and fills the chain with a population of agents,
// so that tests and the demo meet what a public chain shows. It is the only
// package that imports go-ethereum's node.
package devnet
