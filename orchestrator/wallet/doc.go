// Package wallet sends what agents ask for, once. It implements orchestrator.Chain over
// JSON-RPC: a transaction is simulated at a named block, signed under rules that allow
// treasury calls and a few registry functions and nothing else, stored before it is sent,
// sent again or replaced at the same nonce until it is mined, and believed when receipt,
// block, logs and, where there is one, a second endpoint agree.
package wallet
