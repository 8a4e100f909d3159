// Package batch answers about many agents from one snapshot: the reputations of all that a list of ids, wallets and
// domains names, and the comparison of a few agents. REST and GraphQL answer alike.
package batch
