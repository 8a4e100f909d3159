// Package rules decides which transactions the wallet's keys may sign.
//
// Rules.Sign is the only way to a signature, and it checks each transaction first, also those that the program made
// itself: chain and form, no native coin, fees below the Ceilings, and a target and function that the key's Role may
// call. An agent's own key signs a few functions of the registries, and transactions that settle x402 payments in
// listed tokens. The operator's key signs calls of the treasury that name the agent, run and task that ask. The owner's
// key signs what sets policies of the treasury. Nothing else is signed.
//
// Spending is the decoded treasury call. Terms are what a treasury allows an agent at one block:
// Questions lists the views to ask, and Judge applies the treasury's rules to the answers, so
// that a simulation can say with figures why a call would be refused.
//
// The package asks no endpoint and no database.
package rules
