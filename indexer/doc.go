// Package indexer brings chains and documents into the store.
//
// A Follower follows one chain: it asks a Source for logs, checks that the
// answer holds together, decodes it and stores each range in one transaction.
// Documents fetches the URIs that the store says are due. Import reads recorded
// logs. All state is in the store: any of them may be killed at any instruction,
// and any number of processes may run them on one database.
package indexer
