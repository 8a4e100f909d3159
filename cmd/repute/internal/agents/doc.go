// Package agents has the commands of the agent runtime: `repute agent serve` runs an agent by the Agent Runtime
// Specification, `agent refunds` lists what it owes back, and `agent verify-response` and `agent verify-compliance`
// check agents from outside, of whatever runtime.
//
// agent serve puts together what package agent and those below it implement. The builder makes the parts in the order
// in which they can fail, the cheapest first: tracing, the key, the identity on the chain, the way to settle payments,
// and last the router with its capabilities, which asks the chain whether the key may act for the agent. What was
// opened on the way is closed by builder.close, also when a later part fails. The result is a process: an HTTP server,
// or one MCP client on standard input and output, beside background work (heartbeat, upkeep, the wallet's transactions,
// the policy's file). Any of these that fails ends the process. SIGTERM ends it in order: nothing new is accepted,
// requests in flight get limits.drain and are then canceled, and their answers are still sent.
//
// The configuration of the agent is its own file (package agent/config); that of repute serves for the database, the
// wallets and the hosts that may be asked. The governor decides about requests by the agent's policy.json. It remembers
// the scores of clients for ten minutes, and leaves an index that did not answer alone for five seconds, so that not
// every request waits for it.
//
// Processes of one agent on one database share its payments, log and free requests: each request may reach any of them.
package agents
