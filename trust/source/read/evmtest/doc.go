// Package evmtest tests the reading of sources against contracts on a real EVM.
package evmtest
