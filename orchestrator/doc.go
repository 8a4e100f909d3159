// Package orchestrator runs tasks by agents as far as indexed trust allows: OpenFi's agent standard on top of the
// index.
//
// Package tasks stores a task, and an Engine works on its root run: one job of river, which does the nine phases
// discover, plan, trust, policy, dry run, execute, verify, summarize and record (repute.Phases). The outcome of a
// phase is stored with the checkpoint of the job in one transaction, so that another process continues with the next
// phase where one died. A run has one owner at a time: the lease of its root (package leases). Every write checks the
// fence of the lease, so that an engine that lost it, for example because its machine was asleep, stores and sends
// nothing more.
//
// An agent is a Module: a part of this binary, an agent of package agents or oaf, or a server elsewhere (package
// remote). What it reaches outside itself it reaches through a Context. A Context journals each call before it makes
// it, takes its charge from the budget, and writes its receipt when it ended. After a crash the methods of a module
// are called again and the answers of earlier calls come from the journal: calls of one phase and step are numbered,
// and named by what they ask for. A call that must not be made twice is asked about (LocalCall.Once), paid once by
// its key (Pay), or sent once by its intent (Send). Steps of other agents are runs below the run, with all phases and
// with a decision about that agent, and they share the budget of the root.
//
// Package trustgate decides about agents, and the operator's policy about tasks, calls and payments. Package safety has
// the limits that no policy lifts. A decision that is left to a person makes the run wait: its phase is stored as
// waiting, the process lets go of the run, and an answer queues it again. A decision is made again right before
// something is signed, because the policy, the agent and its trust may have changed since. Decisions are stored as a
// chain of hashes (store/rundb), which package audit checks.
//
// An error of the database or of a chain's endpoints does not fail a run. The phase ends and is repeated, whatever the
// agent made of the error (see lost and interrupted), for as long as the budget gives the whole run. Code of agents may
// panic, hang or ignore its end (package guard): that fails its phase and nothing else.
//
// The other packages below have the parts. Package standard has the types that agents and the runtime exchange,
// lifecycle the rules of the phases, schedule the order of steps, transaction the types and effects of transactions,
// and pending the transactions that were journaled. Package quote computes what payments would cost, approval shows a
// person what to approve, and crosscheck compares what an agent says with its receipts. Package journal has the stored
// form of records, builtin registers the binary's agents, and telemetry has metrics and traces. Package control serves
// all of it over HTTP.
package orchestrator
