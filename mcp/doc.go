// Package mcp offers tools to agents over the Model Context Protocol, on HTTP and on standard input and output. It
// knows nothing of what a tool does: packages that answer questions add their tools to a Server. What is the same for
// every tool is here: the schema of what it takes and gives, strict reading, bounds, and how an error is told.
//
// New returns a Server without tools, and Add gives it one whose input and output are Go types; it fails if these have
// no schema. AddRaw adds one whose schemas and values are JSON, such as a capability that somebody else describes; Add
// makes such a tool of its types. Serve them with Server.Handler over HTTP, with Server.Events for clients of the first
// version of the protocol, or with Server.Stdio.
//
// A tool's function returns errors of the kinds in the root package; the caller reads code, detail and fix, and a fault
// of this program is logged and reported with no internal details. A panic fails the call alone. Token is the caller's
// bearer token inside a tool: what a caller may do is for the tool to check.
//
// A model reads the list of tools before anything else, so that its length is paid for in every conversation: the
// schema of an answer is listed as an outline, which leaves members out and never contradicts the schema. It has at
// most 400 bytes, unless the answer's own members need more.
//
// No state is kept between requests over HTTP, so that any process answers any of them. A call ends after
// Options.Timeout or when its caller leaves, and an answer of a tool by Add that is above Options.Output
// is refused rather than cut.
package mcp
