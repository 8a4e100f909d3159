// Package control is the control plane of the orchestrator over HTTP: agents, tasks and runs under
// /v1, events of runs as a stream, and the files that agents publish. Reading is open to everyone
// unless reads are private; changing anything needs a bearer token. Handlers decode, call packages
// orchestrator and store, and encode: runs are executed elsewhere in the process, by package
// orchestrator.
package control
