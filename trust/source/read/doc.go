// Package read reads sources of trust from the chain: it makes the contract calls that package source returns, all of
// them at the same block. The trust engine calls Reader.Read at the end of each epoch; `repute sources check` and
// `repute sources verify` call it for a person.
//
// Calls are batched through the contract Multicall3. When endpoints of two hosts are configured for a chain, two
// endpoints must give the same answers; otherwise the source is incomplete and the reason names the hosts. A source
// whose home is another chain is read at the last final block of that chain whose time is not after the end of the
// epoch. It counts only for addresses that have no code on either chain.
//
// When a source declares events, its logs are read once for each rater that has a credential. Later readings only read
// the logs of new blocks.
package read
