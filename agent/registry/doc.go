// Package registry asks the nodes of an agent's chain about the agent: its owner, wallet and URI, what happened to it,
// and what x402 needs to verify and settle payments. It implements agent.Registry, x402.Chain and x402.History, and
// writes nothing.
//
// Who the agent is and which payments took place MUST NOT be decided by one node. Such questions go to all nodes at
// once, and what more than half of those that answer say counts; where they disagree, or none answers, the error is
// repute.ErrUnavailable. A node that is far behind what a majority showed earlier does not count. Other questions
// (Call, Events) go to the nodes in order until one answers, because what follows from them is checked again or
// repeated.
//
// Every question to a node ends after Options.Timeout. Errors name hosts and never whole URLs, whose paths can have
// secrets.
package registry
