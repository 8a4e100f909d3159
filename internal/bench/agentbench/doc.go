// Package agentbench measures the agent runtime: what it adds to the work of a capability, that it
// answers under load, and that payments survive killed processes.
//
// The agent is a process of its own on a real Postgres. Payments are real signatures of EIP-3009; the
// facilitator is a ledger of this process, which moves the money of an authorization once, as the
// token's contract does. Times therefore leave out the chain.
package agentbench
