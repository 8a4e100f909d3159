// Package agentbench measures the agent runtime: what it adds to the work of a capability, that it
// answers under load, and that payments survive killed processes.
//
// The agent is a process of its own on a real Postgres. Payments are real signatures of EIP-3009; the
// facilitator is a ledger of this process, which moves the money of an authorization once, as the
// token's contract does. Times therefore leave out the chain.
//
// Three measurements follow each other on one database. Requests one after the other show what the runtime adds to a
// handler; a crowd of clients shows whether it holds under load, and that its health is answered meanwhile; and calls
// that are paid while the process is killed show that no settled payment is without its answer and none is settled
// twice. A killed process is replaced at the same address, as a supervisor would do.
package agentbench
