// Package contracts knows the three ERC-8004 registries from the chain's side:
// it decodes their logs, lists the topics to ask for and says where they are
// deployed. It also takes calldata apart, of these contracts, of tokens, and of any
// function whose text is given. Their Solidity source, artifacts and bindings lie
// beside it. It does no I/O and no arithmetic.
package contracts

//go:generate go run ./internal/gen
