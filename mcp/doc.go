// Package mcp offers tools to agents over the Model Context Protocol, on HTTP and on
// standard input and output. It knows nothing of what a tool does: packages that answer
// questions add their tools to a Server. What is the same for every tool is here: the
// schema of what it takes and gives, strict reading, bounds, and how an error is told.
//
// New returns a Server without tools, and Add gives it one. Add fails if the types of the
// input or the output have no schema. Serve it with Server.Handler over HTTP or with
// Server.Stdio. A tool's function returns errors of the kinds in the root package; the
// caller reads code, detail and fix. Token is the caller's bearer token inside a tool.
package mcp
