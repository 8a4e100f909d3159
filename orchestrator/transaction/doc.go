// Package transaction is what agents may ask a chain for, before any rule is asked about it: the
// transaction itself, the placeholders that a dry run leaves open with their bounds, what a
// transaction moves out of the treasury by its calldata and by its simulation, and the interface
// of the chain that it is sent to. It decides nothing and reads no table.
package transaction
