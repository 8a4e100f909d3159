// Package agents holds the agents that repute comes with: a coordinator that splits a task over specialists, a
// registrar, a reporter, a validator and a payer. There is no language model in them: the input of a task says what
// is wanted. They are also the examples of how an agent of the orchestrator is written.
//
// An Agent is a worker in one of two settings. As a module of an engine its methods get the Context of a run. Behind
// Handler it serves the protocol of package remote in a process of its own. In both cases the worker sees a World,
// which has the calls that it may make: behind Handler the first call that has no outcome yet ends the method, the
// runtime makes the call and asks again with the outcome. Therefore a method makes the same calls in the same order
// whenever it is repeated, and keeps nothing between them.
//
// A specialist has a plan of one step and a craft: accept refuses an order without any call, dryRun declares its
// transactions with placeholders for what only Execute can know, do sends them, and verify reads the result back from
// the chain. The registrar registers agents, publishes their files and sets wallets with the wallet's consent. The
// reporter measures an endpoint that the agent's own file names, and posts what it measured as feedback with its
// file. The validator does claimed work again, of tools and of sources that its operator chose. The payer pays from
// the treasury within the caps of its policy. Unknown fields of an order are refused, because a misspelled cap would
// be no cap.
//
// The coordinator makes one step per job in its input, waits for those before, and concludes what they came to.
package agents
