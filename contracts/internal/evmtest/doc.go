// Package evmtest runs the registries on a real EVM and compares them with what
// is known of the deployed contracts: logs, results, reverts and storage. It has
// tests only, apart from package contracts so that the node they need is not
// built to test or fuzz the decoder.
package evmtest
