// Package agentdb owns the tables of agents that are run here: payments, each claimed by one process
// before its work, and the append-only log of what agents did.
package agentdb
