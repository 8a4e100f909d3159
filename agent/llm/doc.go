// Package llm runs an agent that a language model drives: turns with the model, calls of tools, and the
// bounds of both. It knows no provider and no protocol of tools. Models are asked through Model, and every
// call that costs something goes through a Ledger, which counts it, refuses it when a budget is used up,
// and does not repeat what it journaled before.
package llm
