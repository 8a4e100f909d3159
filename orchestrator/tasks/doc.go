// Package tasks submits, cancels and retries tasks of the orchestrator, and answers open approvals. It writes rows and
// jobs of river in one transaction; an orchestrator.Engine in this process or another takes the jobs and does the work.
package tasks
