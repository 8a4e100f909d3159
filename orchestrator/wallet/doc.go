// Package wallet signs and sends the transactions that agents and operators request, each once. It
// implements orchestrator.Chain over JSON-RPC.
//
// Send takes an intent through four steps, and any process with the same database can continue
// after each. The call is simulated at a named block that two endpoints have. It is signed if
// package rules permits it. The signed bytes are stored before they are sent. Then they are sent
// again, or replaced at the same nonce with higher fees, until the transaction is mined. Its result is
// accepted once receipt, block and logs agree and, if the chain has several endpoints, a second
// endpoint returns the same.
//
// Requests go through the node.Pool of the chain, which has the limits, the health and the failover of
// the endpoints. Endpoints may lie, lag and fail. Therefore this package reads everything that decides
// about money (fees, nonces, balances, terms of the treasury) from all endpoints: agree needs two equal
// answers and no contradiction.
//
// Operator actions (SimulateOwner, SendOwner) pass the same steps with the key of the treasury's owner.
// SignConsent and ConsentOfRun sign the consent by which a wallet serves an agent.
package wallet
