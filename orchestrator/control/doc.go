// Package control is the control plane of the orchestrator over HTTP: agents, tasks and runs under /v1, events of
// runs as a stream, the files that agents publish, and OpenFi's tools over MCP, which call the same handlers.
//
// New mounts everything on an httpapi.Server. Handlers decode, call packages tasks and store/rundb, and encode: a run
// is executed by an engine in this process or another, and what an answer shows is what is stored. The types of
// answers are in the files of their routes; functions that end in OnWire convert stored rows into them. Package rest
// mounts typed handlers, and the packages beside it have routes that need no Control: treasury and operator actions,
// webhooks, API keys, and the log of an agent. Package workgraph reads the same for GraphQL, by ReadRun and Tasks.
//
// Who may do what is one table, roleOf: a route below /v1 that is not in it cannot be mounted, and a request for one
// needs all roles. Reads are open to everyone unless PrivateReads is set; changing anything takes a bearer token with
// a role.
//
// Lists are ordered by time and id, and their cursors belong to one list with its filters. Streams of events poll the
// database, at most Streams of a caller and AllStreams of all, and end with the run. Scores are replayed at most two
// at the same time, because each may read much. Every text of a caller is bounded before it is stored.
//
// Register takes an agent on a server of its own: the server is asked who it is, through a client that limits the
// addresses, and must prove that it speaks for its identity. Errors of that server's transport are only logged, as
// they may tell of the operator's network.
package control
