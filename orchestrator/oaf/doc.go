// Package oaf makes agents of the Open Agent Format modules of the orchestrator. The conversation with a model is led
// by package oafagent; here it becomes the step of a run.
//
// Every call of a model or a tool goes through the run's Context (ledger): it is counted, charged and journaled
// before it is made, and a conversation that is interrupted is led again with the answers from the journal, until the
// call that has none. A tool that must not be used twice is asked about. Work for a sub-agent is a run of its own
// behind the trust gate (Context.Delegate), and sub-agents that the file names for a task's tags work before the
// agent, as steps of the plan.
//
// The bound of the agent's own file holds beside the budget of the task. Text that a model writes is published in
// parts as events of the run. Sessions belong to the caller who gave the task, so that nobody reads what others told
// the agent.
package oaf
