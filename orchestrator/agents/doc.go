// Package agents holds the agents that repute comes with: a coordinator that splits a
// task over specialists, a registrar, a reporter, a validator and a payer. There is no
// language model in them: a task says in its input what is wanted. What they do on a chain
// they check on the chain.
//
// They reach the world only through a World, which is an orchestrator.Context, or the
// other side of the protocol for agents elsewhere (Handler).
package agents
