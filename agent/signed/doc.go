// Package signed has the EIP-712 types of the Agent Runtime Specification and the hashes that they contain: answers of
// agents (TaskResponse), promises to pay (PaymentReceipt), and those that the specification leaves open: requests
// (TaskRequest), policies (Policy) and heartbeats (Heartbeat).
//
// All types are in one domain, named TrustlessAgentFramework, version 1, whose chain and contract are those of the
// registry that the agent is registered in: a signature for one agent's registry is none for another. Hashes are of the
// canonical form of JSON (RFC 8785), so that a proxy may write the same JSON otherwise.
//
// Response and SignedRequest are what HTTP headers carry of an answer and of a request, and Promise is the header of a
// payment by promise; reading them is bounded, and every error names the header. Check accepts a signature of the
// account's key, or of a contract wallet if Wallets confirms it. A signature has one valid value of s, and Fresh bounds
// its age; whether it was used before is for the caller to know.
//
// The package makes no request: keys are behind Signer, and contract wallets behind Wallets.
package signed
