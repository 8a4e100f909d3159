// Package rundb keeps the tasks of the orchestrator: runs with their phases, steps and calls,
// receipts, approvals, the hash-linked decisions, and the lease of the worker that has a run.
package rundb
