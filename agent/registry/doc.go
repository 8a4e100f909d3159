// Package registry asks the nodes of an agent's chain about the agent: its owner, wallet and URI, what
// happened to it, and contracts in general. Several nodes are asked in order until one answers.
package registry
