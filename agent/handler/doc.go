// Package handler runs the work behind a capability: a program (Exec), an HTTP server (HTTP), a tool of an MCP server
// (MCP) or a task of an orchestrator (Task). All are an agent.Handler and safe for concurrent use.
//
// Run returns the answer as JSON and ends soon after its context does. Its error is ErrFailed where the handler is at
// fault, ErrTimeout where it did not end in time, repute.ErrUnavailable where it cannot be reached or started now, or
// the cause of a context that was canceled. What a handler says about its own failure goes to the log, bounded, and
// never into the error, because errors reach clients. Answers are bounded as well.
//
// A call has a request id that is the same where a paid call is repeated after a crash. HTTP and Task send it as the
// idempotency key and MCP in _meta, so that the other side can do the work once.
//
// Exec gives each program limits of the kernel and kills every process that it started when the call ends. It does not
// confine what a program reads: see Exec for what it does not protect from. Programs of MCPProgram run without limits,
// because the operator names them. What HTTP, MCPEndpoint and Task may reach is decided by the client that they are
// given.
package handler
