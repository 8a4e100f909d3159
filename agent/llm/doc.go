// Package llm runs a conversation with a language model: turns with the model, calls of tools, and the bounds of both.
// It knows no provider and no protocol of tools.
//
// A Loop asks a Model, makes the calls of tools that the reply wants, and asks again with their results until the model
// answers without a call. Everything that costs something goes through a Ledger: it counts the call, refuses it when a
// budget is used up, and answers from its journal what was done before. The orchestrator's ledger journals in Postgres,
// so that a run that was interrupted is resumed; Meter counts in memory, for work that is not resumed. A Request
// therefore has the same JSON for the same turn.
//
// The model is not trusted: names of tools, inputs and texts are bounded, an input with a repeated member is refused,
// and a call that names no tool counts, too. What the model can correct is told to it as a failed result; what
// Ledger.Ends reports ends the run. A reply that was cut or refused makes no calls and is no answer.
//
// Bounds.Wall is the time of the whole conversation with its preparation: callers MUST wrap both in Within.
package llm
