// Package state compares what is stored of agents with the state of the registries' contracts.
//
// Every comparison is of one block: what was stored then, out of the histories, and what the views
// of the contracts answer of it. Compare goes through a Part of the agents: owner, URI, wallet,
// approval, metadata, clients, the last index and the sum of each client's ratings, responses,
// validation requests and answers. Where the sums differ, or a client has more ratings than one
// call can read, it compares ratings one by one. The result are gaps: events that must be
// missing for the states to differ. Shows compares the subject of one gap again.
//
// A view that an endpoint does not answer makes no gap: the kinds of event whose outcome it shows
// are returned as skipped.
package state
