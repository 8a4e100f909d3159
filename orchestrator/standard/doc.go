// Package standard has the types of OpenFi's agent standard that agents and the runtime hand to each other, with the
// checks that each must pass. The interface of an agent, which needs the runtime's Context, is orchestrator.Module.
//
// In the order of a run: a Request with its Terms asks for a task. An agent has a Manifest with the bounds of its
// runs (CheckInfo). It is given a Task and makes a Plan of Steps, which may name other agents (CheckPlan refuses
// cycles, unknown agents and more steps than the budget has). It declares in a DryRun what it would send and pay,
// reports an Execution, checks it in a Verification, and describes it in a Summary.
//
// All of them are untrusted JSON if the agent is a program of somebody else: sizes are bounded here or where the JSON
// enters (repute.CheckJSON). What an Execution or Summary claims is compared with what is stored by package crosscheck:
// here nothing is read. The JSON is the protocol of package remote and the stored form of phases, so that its names
// must not change.
package standard
