// Package handler runs the work behind a capability: a program (Exec), an HTTP server (HTTP), a tool
// of an MCP server (MCP) or a task of an orchestrator (Task). All are a Handler.
//
// What a handler says about its own failure goes to the log, bounded, and never into the error,
// because errors reach clients. ErrFailed is the handler's fault, ErrTimeout says that it did not end
// in time, and repute.ErrUnavailable that it cannot be reached or started now.
package handler
