// Package control is the control plane of the orchestrator over HTTP: agents, tasks and
// runs under /v1, events of runs as a stream, and the files that agents publish. Whoever
// asks may read; changing anything takes a bearer token. Handlers decode, ask packages
// orchestrator and store, and encode: no run is worked on here.
package control
