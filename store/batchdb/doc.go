// Package batchdb reads many agents at once, each named by its id, by an address or by a domain, from one snapshot.
//
// Read answers a runtime that wants the reputations of everybody it may deal with, and Compare a reader who puts a few
// agents side by side. However many agents are asked for, both send the same number of statements: one for each way of
// naming agents, and those of package query for many agents. An item that names nothing, or is wrong, has an error of
// its own and does not fail the others; items that would exceed MaxAgents fail in the order in which they were asked
// for.
//
// An address or a domain may name several agents. Matches say how, and whether that is proven: the wallet of an agent
// signed for it, and a domain's own file names it, but anybody can register an agent that names the domain of another.
// Proven matches come first, so that nobody displaces them by registering agents.
//
// It owns no table.
package batchdb
