// Package wallet sends transactions that agents and operators ask for, each once. It implements
// orchestrator.Chain over JSON-RPC.
//
// Send takes an intent through four steps, and any process with the same database can continue
// after each. The call is simulated at a named block that two endpoints have. It is signed if
// package rules permits it. The signed bytes are stored before they are sent. Then they are sent
// again, or replaced at the same nonce with higher fees, until the transaction is mined. It is
// believed once receipt, block and logs agree and, where there is one, a second endpoint shows
// the same.
//
// Endpoints may lie, lag and fail. What decides about money (fees, nonces, balances, terms of the
// treasury) is asked of all endpoints: agree needs two equal answers and no other one.
//
// The operator's own acts (SimulateOwner, SendOwner) take the same way with another key.
// SignConsent and ConsentOfRun sign the consent by which a wallet serves an agent.
package wallet
