// Package read asks the contracts of sources of trust about raters: it makes the calls that package source asks for, at
// one block that all answers are about.
//
// Many calls go in one, through the contract Multicall3. Where endpoints of two hosts are configured for a chain, two
// must give the same answers; otherwise the source is incomplete and the reason names the hosts. A source whose home is
// another chain is read at the last final block of that chain which is not after the block that scores end with, and
// counts only for addresses that have no code on either chain.
//
// Where a source names the logs of its credentials, they are read once for each rater that has one, and from then on
// for new blocks alone.
package read
