// Package batch answers about many agents from one snapshot: the reputations of all that a list of ids, wallets and
// domains names, and the comparison of a few agents. REST and GraphQL answer alike.
//
// An item that names nothing, or is no valid name, has a problem of its own and does not fail the others. What fails by
// a fault of the server fails the whole batch. The number of statements does not depend on the number of items.
//
// The sentences of a comparison say what sets agents apart and which is best in it, and that nothing follows from a
// difference that the evidence does not show, such as of scores whose bounds overlap.
package batch
