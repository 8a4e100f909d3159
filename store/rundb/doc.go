// Package rundb stores the tasks of the orchestrator: runs with their phases, steps and calls,
// receipts, approvals, and decisions.
//
// AddTask stores a task with its root run and queues a job. A worker claims the root run with
// TakeRun and extends the claim with HoldRuns; every write checks the fence that TakeRun
// raised, so a worker that lost its claim changes nothing. SavePhase stores the outcome of a
// phase. BeginCall stores each call before it is made and EndCall its result, so that a worker
// that continues after a crash knows what may have happened. RequeueLost queues runs whose
// worker or job is lost.
//
// Decisions of policies and people form a chain of hashes per root run. What they refer to
// stays stored as long as they do.
//
// A task has one root run, and runs below it for steps that other agents take. The claim, the limits, the chain of
// decisions and the numbers of events belong to the root run, whose row every write locks: writes of one task never
// overlap, and those of different tasks never wait for each other. Times that decide about claims are those of the
// database's clock.
//
// A person can cancel a task, answer what it waits for, and retry a failed one (CancelTask, Approve, RetryTask). A
// worker sees a cancellation when it next extends its claim; the others raise the fence, so that a worker which comes
// too late is refused. A retry is a new attempt: it keeps the phases and calls that succeeded, and what may have had an
// effect is never made again unasked.
//
// Jobs are River's: callers pass a function that inserts the job, which runs in the same transaction, so that a task
// without a job cannot be stored. A job can still be lost with its worker; RequeueLost finds that.
//
// Tables: modules, tasks, runs, run_phases, run_steps, run_calls, run_events, run_decisions,
// run_approvals.
package rundb
