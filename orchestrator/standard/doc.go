// Package standard has the types of OpenFi's agent standard that agents and the runtime hand to
// each other: manifests, tasks and their terms, plans, dry runs, executions, verifications and
// summaries, with the checks that each must pass. The interface of an agent, which needs the
// runtime's Context, is orchestrator.Module.
package standard
