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
// Tables: modules, tasks, runs, run_phases, run_steps, run_calls, run_events, run_decisions,
// run_approvals.
package rundb
