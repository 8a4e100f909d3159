// Package signed has the EIP-712 types of the Agent Runtime Specification and the hashes that they
// contain: answers of agents (TaskResponse), promises to pay (PaymentReceipt), and those that the
// specification leaves open: requests (TaskRequest), policies (Policy) and heartbeats (Heartbeat).
// It signs and checks, and makes no request: signatures of contract wallets are checked by Wallets.
//
// All types are in one domain, named TrustlessAgentFramework, version 1, whose chain and contract
// are those of the registry that the agent is registered in.
package signed
